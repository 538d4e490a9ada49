/**
 * Take-over: a run whose process died or shut down continues here.
 *
 * @module
 */
import type { RunResult } from "../../hooks/points/run.ts";
import { cleanUp } from "../../run/failure.ts";
import { conclude, openCalls } from "../../run/finish.ts";
import type { EngineRun } from "../../run/run.ts";
import { restoredSession } from "../saved_session.ts";

/** Prepares a run before its hooks begin: runs the cleanup of a run whose process died. Resolves to its result if it ends or is left before. */
export async function takeOver(run: EngineRun): Promise<RunResult | undefined> {
  const { control, sink, limits, loop, claimed: { start: { recoveries = 0 }, lost, closing } } = run;
  await sink.settled?.(); // a run whose record the log refuses is taken over again and again
  const isLeft = restoredSession(run) !== undefined || control.stop.leave || control.stop.handOver !== undefined;
  if (isLeft || recoveries > limits.recoveries + 1) return await endWithoutHooks(run);
  if (lost && closing === undefined) {
    await cleanUp(run, { reason: "lost", source: "stop" }, openCalls(run, loop.position));
  }
  return undefined;
}

/** Ends a run before its hooks begin. Another process continues it, or its process has also died when the run was to end: perhaps in one of its hooks. */
function endWithoutHooks(run: EngineRun): Promise<RunResult> {
  const { work, control, exit, arrivals, claimed: { closing = "recoveries" } } = run;
  void work.cleanUp(() => Promise.resolve()); // there is one cleanup
  control.abort(closing);
  exit.settle();
  arrivals.close();
  return conclude(run);
}
