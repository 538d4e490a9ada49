/**
 * The records of runs, wherever the runs are: read, followed, and brought to their end where nobody else does that.
 *
 * @module
 */
import { SessionError } from "../core/claim.ts";
import type { Event } from "../protocol/event.ts";
import { noUsage } from "../protocol/message.ts";
import type { Session } from "../protocol/session.ts";
import type { Log, LogPage } from "../session/log.ts";
import { type Caller, sessionFor } from "./caller.ts";
import type { Settled } from "./options.ts";
import { follow } from "./replay.ts";
import { Refusal } from "./refusal.ts";
import { type Given, type LiveRun, recordOf, type Runs } from "./runs.ts";
import { lineOf } from "./stream.ts";

/** The records of runs. To a caller, those of others are not there. */
export interface Records {
  /** What comes after the event of number `after`. */
  read(run: string, caller: Caller, after: number): Promise<LogPage | undefined>;
  /** How far a record goes: a page without lines. */
  end(run: string, caller: Caller): Promise<LogPage | undefined>;
  /**
   * What comes after the event of number `after`, and then whatever comes, until `signal` aborts. Where nothing comes, it is looked whether the run was
   * lost.
   */
  follow(run: string, caller: Caller, after: number, signal: AbortSignal): AsyncIterable<LogPage>;
  /** The session of a run, as long as its record says that. */
  sessionOf(run: string, caller: Caller): Promise<string | undefined>;
  /**
   * Looks after a record that has not ended, of a run that does not run here: goes on with the run where its process died, and adds the last event where
   * the session knows it and the record does not.
   */
  mend(run: string, caller: Caller): Promise<void>;
  /** Ends a run that does not run here but has its session, as soon as its calls have results; gives nothing where somebody else was faster. */
  close(run: string, session: string, reason: string, caller: Caller): Promise<LiveRun | undefined>;
}

/** Keeps the records that are in `log`. */
export function recordsOf(log: Log, runs: Runs, how: Settled): Records {
  const { store, lease, sole, signal: shutdown } = how;
  const read: Records["read"] = (run, caller, after) => log.read(recordOf(run, caller), after);
  const end: Records["end"] = (run, caller) => read(run, caller, Number.MAX_SAFE_INTEGER);

  async function sessionOf(run: string, caller: Caller): Promise<string | undefined> {
    const page = await read(run, caller, 0);
    const started = page?.lines.find((line) => line.startsWith(`{"type":"run.started"`));
    return started && JSON.parse(started).session;
  }

  async function goOn(given: Given, caller: Caller): Promise<LiveRun | undefined> {
    try {
      const run = await runs.launch(given, caller);
      caller.outlive(run.over);
      return run;
    } catch (error) {
      if (error instanceof SessionError || error instanceof Refusal) return undefined; // somebody else was faster
      throw error;
    }
  }

  async function mend(run: string, caller: Caller): Promise<void> {
    if (runs.get(run, caller)) return;
    const page = await end(run, caller);
    if (!page || page.ended) return;
    const session = await sessionOf(run, caller);
    if (store ? session === undefined : !sole) return; // nobody can tell
    const kept = session === undefined ? undefined : await sessionFor(caller, how, session);
    const { last: after } = page;
    if (session !== undefined && kept?.run?.id === run && kept.run.status === "running") {
      if (runs.isLost(kept.run, caller)) await goOn({ run, session, answers: [], after }, caller);
      return;
    }
    await log.append(recordOf(run, caller), { after, lines: [lineOf(lastEvent(run, kept))], ended: true });
  }

  return {
    read,
    end,
    sessionOf,
    mend,
    follow: (run, caller, after, signal) =>
      follow(log, recordOf(run, caller), {
        after,
        signal: shutdown ? AbortSignal.any([signal, shutdown]) : signal,
        silence: lease,
        look: () => mend(run, caller),
      }),
    async close(run, session, reason, caller) {
      const { last } = await end(run, caller) ?? {};
      return await goOn({
        run,
        session,
        answers: [],
        closing: reason,
        busy: "replace",
        ...(last !== undefined && { after: last }),
      }, caller);
    },
  };
}

/** The last event of a run that has ended or paused, as far as its session knows; otherwise it was lost. */
function lastEvent(run: string, { run: has, last }: Partial<Session> = {}): Event {
  if (has?.id === run) return { type: "run.paused", questions: has.pending?.questions ?? [], usage: has.usage };
  return last?.run === run ? last.event : { type: "run.aborted", reason: "lost", text: "", usage: noUsage };
}
