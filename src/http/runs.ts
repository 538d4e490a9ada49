/**
 * The runs of a served agent that run here.
 *
 * @module
 */
import { SessionError } from "../core/claim.ts";
import type { Numbered } from "../core/events.ts";
import { nowhere, type Started, type StartOptions } from "../core/run.ts";
import type { RunRecord } from "../protocol/session.ts";
import type { Sink } from "../stream/channel.ts";
import type { Caller } from "./caller.ts";
import type { Settled } from "./options.ts";
import { recorder } from "./record.ts";
import { Refusal, report, shutdown } from "./refusal.ts";
import type { Outlet } from "./stream.ts";

/** What a run begins with, or goes on with. */
export interface Given extends Partial<Pick<StartOptions, "answers" | "after" | "closing" | "busy" | "store">> {
  /** The run's id. */
  readonly run: string;
  /** Its session. */
  readonly session: string;
}

/** A run that runs here. */
export interface LiveRun extends Started {
  /** Settles when it has ended, and its events are on record. */
  readonly over: Promise<void>;
}

/** The runs that run here. */
export interface Runs {
  /** The run of this id, where it runs here and is the caller's. */
  get(run: string, caller: Caller): LiveRun | undefined;
  /** Whether the process of a run that has its session is dead. */
  isLost(record: RunRecord, caller: Caller): boolean;
  /**
   * Begins a run, or goes on with one. Settles when it has its session, and its first events are on record; throws a `SessionError` where it may not have
   * it.
   */
  launch(given: Given, caller: Caller, out?: Outlet): Promise<LiveRun>;
}

/** The id of the record of a run. Nobody else comes upon it: the owner is in it. */
export function recordOf(run: string, { owner }: Caller): string {
  return owner === undefined ? run : `${run} ${owner}`;
}

/** Keeps the runs that `start` begins. */
export function runsOf(
  start: (options: object, sink: Sink<Numbered>) => Started,
  { store, log, limits, lease, sole, signal, onError }: Settled,
): Runs {
  /** By the ids of their records. */
  const live = new Map<string, LiveRun>();
  signal?.addEventListener("abort", () => {
    for (const run of live.values()) run.stop("shutdown");
  });

  /** Begins a run that is here from now on. */
  function begin(given: Given, caller: Caller, vars: unknown, sink: Sink<Numbered>, written?: Promise<void>): LiveRun {
    const id = recordOf(given.run, caller);
    if (live.has(id)) {
      throw new SessionError(`Cannot run session "${given.session}": another run has it`, "busy", given.run);
    }
    const lost = (run: string) => run !== given.run && isDead(run, caller);
    const { owner } = caller;
    const started = start({ store, limits, lease, lost, onError, owner, vars, ...given }, sink);
    const over = Promise.all([started.result, written]).then(() => void live.delete(id)); // neither rejects
    const run = { ...started, over };
    live.set(id, run);
    return run;
  }

  function isDead(run: string, caller: Caller): boolean {
    return sole && !live.has(recordOf(run, caller));
  }

  return {
    get: (run, caller) => live.get(recordOf(run, caller)),
    isLost: ({ id, status, until = Infinity }, caller) =>
      status === "running" && (Date.now() >= until || isDead(id, caller)),
    async launch(given, caller, out) {
      const vars = await caller.vars();
      if (signal?.aborted) throw shutdown();
      const record = log && recorder({
        log,
        id: recordOf(given.run, caller),
        out,
        onLost(error) {
          run.stop(error === undefined ? "lost" : "unrecorded");
          if (error !== undefined) report(onError, error, given.run);
        },
      });
      const run = begin(given, caller, vars, record ?? out ?? nowhere, record?.over);
      try {
        const { after } = await run.opened;
        if (record && !await record.begin(after)) {
          throw new Refusal(503, "unrecorded", "Cannot run this: what happens in it could not be written down");
        }
        return run;
      } catch (error) {
        await run.over;
        throw error;
      }
    },
  };
}
