/**
 * The end of a run: whatever came of it, there is a result, a valid transcript, and a last event.
 *
 * @module
 */
import type { Event, Point } from "../protocol/event.ts";
import { textOf } from "../protocol/message.ts";
import { reasonOf } from "./abandon.ts";
import { blame, cleanUp } from "./failure.ts";
import { leaveBatch } from "./outcome.ts";
import { End, isInterrupt, Pause } from "./interrupt.ts";
import type { Live } from "./live.ts";
import type { Answer, RunResult } from "./points.ts";
import type { Scope } from "./scope.ts";

/** What a run comes to that ended with an answer. */
export function fromAnswer(live: Live, { status, text, reason, output }: Answer): RunResult {
  leaveBatch(live);
  if (status === "cancelled") live.transcript.rollBack();
  return { ...resultOf(live, status, reason), text, ...(output !== undefined && { output }) };
}

/** What a run comes to that did not end with an answer. */
export async function conclude(live: Live, scope: Scope, error: unknown, source: Point): Promise<RunResult> {
  const pauses = (live.pausing ?? error) instanceof Pause && !live.aborted && !live.ended;
  if (!pauses) live.keeping?.freeze();
  live.unfinished?.();
  if (live.aborted) return await cut(live, reasonOf(live.reason));
  if (live.ended) return ended(live, live.ended); // it waits for nobody
  if (error instanceof Pause && !live.pausing) live.hold(error);
  if (live.pausing) {
    if (!isInterrupt(error)) {
      live.events.warn("hook.failed", "A hook failed while the run paused.", { point: source, error });
    }
    return paused(live);
  }
  if (error instanceof End) return ended(live, error);
  try {
    await blame(live, scope, error, source);
  } catch (interrupt) {
    return await conclude(live, scope, interrupt, source); // a hook at `error` ended or paused the run
  }
  if (live.ended) return ended(live, live.ended);
  live.failure = { error };
  live.abort("failure"); // whatever nobody waited for stops too
  return await cut(live, "failure");
}

function paused(live: Live): RunResult {
  const { questions = [], batch } = live.pending ?? {};
  live.pending = { questions, ...(batch && { batch }) };
  return { ...resultOf(live, "paused"), questions, ...(batch && { text: textOf(batch.message) }) };
}

function ended(live: Live, end: End): RunResult {
  const { as, reason, rollback } = end;
  const partial = live.partial?.();
  live.partial = undefined;
  if (partial && textOf(partial) !== "") live.transcript.push(partial);
  leaveBatch(live);
  if (rollback) live.transcript.rollBack();
  const status = as === "ended" ? "done" : as;
  return { ...resultOf(live, status, reason), ...(as === "failed" && { error: end }) };
}

/** A run that was stopped, or failed: its cleanup runs once. */
async function cut(live: Live, reason: string): Promise<RunResult> {
  const partial = live.partial?.();
  leaveBatch(live);
  await (live.cleaning ??= cleanUp(live, reason));
  if (live.rollback) live.transcript.rollBack();
  const status = live.failure ? "failed" : reason === "deadline" ? "limit" : "aborted";
  return { ...resultOf(live, status, reason), ...(partial && { text: textOf(partial) }), ...live.failure };
}

/** What can be said of a run, however it ends. */
export function resultOf(live: Live, status: RunResult["status"], reason?: string): RunResult {
  const { id: run, session, usage, transcript: { messages, said } } = live;
  return {
    status,
    run,
    session,
    text: said,
    questions: [],
    usage,
    messages,
    ...(reason !== undefined && { reason }),
  };
}

/** The last events, and the session given back. */
export async function end(live: Live, given: RunResult): Promise<RunResult> {
  const { id: run, session, usage, events, keeping } = live;
  live.inbox.closed = true;
  if (!live.pending) live.transcript.push(...live.inbox.take()); // who comes next reads it
  const result: RunResult = { ...given, run, session, usage, messages: live.transcript.messages };
  events.emit({ type: "session.closed" });
  const last = lastEvent(live, result);
  try {
    const save = () => live.pending ? keeping?.pause() : keeping?.end(last); // one that was refused waits on
    const saved = live.left || await save();
    if (saved === false) events.warn("session.unsaved", "The session was taken by somebody else.");
  } catch (error) {
    events.warn("session.unsaved", "The session could not be saved.", { error });
  }
  events.emit(last);
  return result;
}

function lastEvent(live: Live, { status, text, reason, output, questions, usage, error }: RunResult): Event {
  switch (status) {
    case "paused":
      return { type: "run.paused", questions, usage };
    case "failed":
      return { type: "run.failed", error: live.events.report(error), message: "The run failed.", usage };
    case "aborted":
      return { type: "run.aborted", reason: reason ?? "stop", text, usage };
    default:
      return {
        type: "run.finished",
        status,
        text,
        usage,
        ...(reason !== undefined && { reason }),
        ...(output !== undefined && { output }),
      };
  }
}
