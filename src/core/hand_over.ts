/**
 * Hand-over and take-over: how a process that shuts down releases its runs, and how the cleanup of a process that died is made up for before its run
 * continues. Which of its calls run again: `savedDecision` in `authorize.ts`. Who finds the run: `session/durable/recovery.ts`.
 *
 * @module
 */
import { cleanUp } from "./error_hooks.ts";
import type { RunResult } from "./points.ts";
import { stops } from "./position.ts";
import type { EngineRun } from "./run.ts";
import { conclude, openCalls } from "./run_end.ts";
import { savedSession } from "./saved_session.ts";
import type { Unsaved } from "./session.ts";
import type { Release } from "./store.ts";
import { promiseTry } from "../stream/tick.ts";

// Hand-over: a process that shuts down gives its runs to other processes.

/**
 * Hands a run over. At the next safe place, or after `grace` milliseconds, its state is saved without its lease, and this process does nothing more for it.
 */
export function handOver(run: EngineRun, release: Release, grace: number): void {
  const { control, loop, exit, events } = run;
  const releaseOnce = () => {
    const ends = control.aborted || events.closed || loop.detached || exit.current !== undefined;
    if (!ends) releaseNow(run, release);
  };
  control.releaseAfter(grace, releaseOnce);
  loop.stopAtSafePlace(releaseOnce);
}

/** Saves the state as it is now, and stops the work: no later event, move or save has an effect. If the state cannot be saved, the run counts as lost. */
function releaseNow(run: EngineRun, release: Release): void {
  const { events, loop, control, writer } = run;
  const saved = promiseTry(() => release(frozenSession(run))); // it throws if a hook has put a value into the state that is not JSON
  events.mute();
  loop.detach();
  const failed = (error: unknown) => {
    writer.close();
    events.report(error);
  };
  // clients reconnect when their streams close, and then find the run without its lease
  control.abort(stops.handedOver, { handedOver: saved.catch(failed).then(() => run.close()) });
}

/** Returns the session with a copy of its head, since hooks that unwind may change its state. It notes whether clients have seen a part of an answer: the next process takes it back. */
function frozenSession(run: EngineRun): Unsaved {
  const { messages, ...head } = savedSession(run);
  const session: Unsaved = { ...JSON.parse(JSON.stringify(head)), messages };
  const { run: saved } = session;
  if (run.work.partial === undefined || saved?.position.at !== "model") return session;
  return { ...session, run: { ...saved, position: { ...saved.position, shown: true } } };
}

// Take-over: a run whose process died or shut down continues here.

/** Prepares a run before its hooks begin: runs the cleanup of a run whose process died. Resolves to its result if it ends or is left before. */
export async function takeOver(run: EngineRun): Promise<RunResult | undefined> {
  const { control, limits, loop, claimed } = run;
  const { type, snapshot: { recoveries = 0 } } = claimed;
  const isLeft = !control.effects.saves || control.stop?.continues;
  if (isLeft || recoveries > limits.recoveries + 1) return await endWithoutHooks(run);
  if (type === "lost") {
    await cleanUp(run, { reason: stops.lost.reason, source: "stop", status: "aborted" }, openCalls(run, loop.position));
  }
  return undefined;
}

/** Ends a run before its hooks begin. Another process continues it, or its process has also died when the run was to end: perhaps in one of its hooks. */
function endWithoutHooks(run: EngineRun): Promise<RunResult> {
  const { work, control, exit, steering, claimed } = run;
  void work.cleanUp(() => Promise.resolve()); // there is one cleanup
  control.abort(claimed.type === "closing" ? claimed.stop : stops.recoveries);
  exit.settle();
  steering.close();
  return conclude(run);
}
