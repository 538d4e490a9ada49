/**
 * Busy sessions: what becomes of a prompt whose session another run has.
 *
 * @module
 */
import { SessionError } from "../core/claim.ts";
import { type Place, recordId } from "../session/record/host.ts";
import type { Caller } from "./caller.ts";
import type { Settled } from "./options.ts";
import type { Runs } from "./runs.ts";

/** A prompt, and how its run begins: as it may, or in the place of whoever has the session. */
export interface Prompt<T> {
  readonly place: Required<Place>;
  readonly caller: Caller;
  begin(busy?: "replace"): Promise<T>;
}

/** Begins the run of a prompt as soon as that may be. */
export type Turns = <T>(prompt: Prompt<T>) => Promise<T>;

/** How many prompts may wait for one session, and how often one tries. */
const most = 10;

/** Those who wait for one session. */
interface Line {
  readonly waiting: Set<Caller>;
  /** Settles when the last of them has begun, or never will. */
  end: Promise<unknown>;
}

/** Makes room for prompts as `busy` says. */
export function turnsOf(runs: Runs, { busy }: Settled): Turns {
  const lines = new Map<string, Line>();

  /** Begins, and again when whoever had the session has made room. */
  async function insist<T>({ place, caller, begin }: Prompt<T>): Promise<T> {
    let how: "replace" | undefined;
    for (let tries = 1;; tries++) {
      try {
        return await begin(how);
      } catch (error) {
        const isBusy = error instanceof SessionError && error.code === "busy" && error.run !== place.run;
        if (!isBusy || tries === most) throw error;
        if (busy === "queue") await ended(error, caller);
        else how = await replaced(error, place.session, caller);
        await isDue(place, caller);
      }
    }
  }

  /** Throws where whoever asked has gone, or the same request has begun the run meanwhile. */
  async function isDue(place: Required<Place>, caller: Caller): Promise<void> {
    if (!caller.leaving.aborted && !await runs.records?.hasBegun(place, caller)) return;
    throw new SessionError(`Cannot run session "${place.session}": that is not asked any more`, "busy", place.run);
  }

  async function ended(error: SessionError, caller: Caller): Promise<void> {
    const { run } = error;
    if (run === undefined) return; // it may be had by now
    const here = runs.get(run, caller);
    if (here) await here.over;
    else if (!await runs.records?.outlast(run, caller, caller.leaving)) throw error;
  }

  /** Stops who has the session; where nobody can do that here, the next one does as it begins. */
  async function replaced({ run }: SessionError, session: string, caller: Caller): Promise<"replace" | undefined> {
    if (run === undefined) return undefined;
    const here = runs.get(run, caller);
    if (!here && !runs.records) return "replace";
    here?.stop("replaced");
    await (here ?? await runs.records?.close(run, session, "replaced", caller))?.over;
    return undefined;
  }

  /** Begins when everybody has who came before. */
  async function inLine<T>(prompt: Prompt<T>): Promise<T> {
    const { place, caller } = prompt;
    const id = recordId(place.session, caller);
    const line = lines.get(id) ?? { waiting: new Set(), end: Promise.resolve() };
    if ([...line.waiting].filter(({ leaving }) => !leaving.aborted).length >= most) {
      throw new SessionError(`Cannot run session "${place.session}": too many wait for it`, "busy");
    }
    const begun = line.waiting.size === 0
      ? insist(prompt)
      : line.end.then(() => isDue(place, caller)).then(() => insist(prompt));
    lines.set(id, line);
    line.waiting.add(caller);
    line.end = begun.catch(() => {}).finally(() => { // who waits for it hears of that
      line.waiting.delete(caller);
      if (line.waiting.size === 0) lines.delete(id);
    });
    return await begun;
  }

  return { refuse: <T>({ begin }: Prompt<T>) => begin(), queue: inLine, replace: insist }[busy];
}
