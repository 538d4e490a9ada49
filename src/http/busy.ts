/**
 * Busy sessions: what becomes of a prompt whose session another run has.
 *
 * @module
 */
import { SessionError } from "../core/claim.ts";
import { recordId } from "../session/record/host.ts";
import type { Place } from "../session/record/records.ts";
import type { Caller } from "./caller.ts";
import type { Settled } from "./options.ts";
import type { Runs } from "./runs.ts";

/** Has a prompt begin its run, as soon as that may be; `busy` is how. */
export type Turns = <T>(
  place: Required<Place>,
  caller: Caller,
  begin: (busy?: "replace") => Promise<T>,
) => Promise<T>;

/** How many prompts may wait for one session, and how often one tries. */
const most = 10;

/** Those who wait for one session. */
interface Line {
  readonly waiting: Set<Caller>;
  /** Settles when the last of them has begun, or has left. */
  end: Promise<unknown>;
}

/** Makes room for prompts as `busy` says. */
export function turnsOf(runs: Runs, { busy }: Settled): Turns {
  const lines = new Map<string, Line>();

  /** Begins, and again when whoever had the session has made room. */
  const insist: Turns = async (place, caller, begin) => {
    let how: "replace" | undefined;
    for (let tries = 1;; tries++) {
      try {
        return await begin(how);
      } catch (error) {
        const isBusy = error instanceof SessionError && error.code === "busy" && error.run !== place.run;
        if (!isBusy || tries === most) throw error;
        if (busy === "queue") await ended(error, caller);
        else how = await replaced(error, place.session, caller);
        if (caller.leaving.aborted || await runs.records?.hasBegun(place, caller)) throw error;
      }
    }
  };

  async function ended(error: SessionError, caller: Caller): Promise<void> {
    const { run } = error;
    if (run === undefined) return; // it may be had by now
    const here = runs.get(run, caller);
    if (here) await here.over;
    else if (!await runs.records?.await(run, caller, caller.leaving)) throw error;
  }

  /** Stops who has the session; where nobody can here, the next one does that as it begins. */
  async function replaced({ run }: SessionError, session: string, caller: Caller): Promise<"replace" | undefined> {
    if (run === undefined) return undefined;
    const here = runs.get(run, caller);
    here?.stop("replaced");
    if (!here && !runs.records) return "replace";
    await (here ?? await runs.records?.close(run, session, "replaced", caller))?.over;
    return undefined;
  }

  /** Begins when everybody has who came before. */
  async function inLine<T>(id: string, caller: Caller, begin: () => Promise<T>): Promise<T> {
    const line = lines.get(id) ?? { waiting: new Set(), end: Promise.resolve() };
    if ([...line.waiting].filter(({ leaving }) => !leaving.aborted).length >= most) {
      throw new SessionError("Cannot run this: too many wait for the session", "busy");
    }
    lines.set(id, line);
    line.waiting.add(caller);
    const begun = line.end.then(() => {
      if (caller.leaving.aborted) throw new SessionError("Cannot run this: whoever asked has gone", "busy");
      return begin();
    });
    line.end = begun.catch(() => {}).finally(() => { // whoever waits for it hears of that
      line.waiting.delete(caller);
      if (line.waiting.size === 0) lines.delete(id);
    });
    return await begun;
  }

  if (busy === "refuse") return (_place, _caller, begin) => begin();
  if (busy === "replace") return insist;
  return (place, caller, begin) => inLine(recordId(place.session, caller), caller, () => insist(place, caller, begin));
}
