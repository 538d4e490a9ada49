/**
 * The end of a run: an exit, a valid transcript, the cleanup, and the result.
 *
 * @module
 */
import { interrupted, stopped, withheld } from "./call_results.ts";
import { cleanUp, type CleanupCause, notifyErrorHooks } from "./error_hooks.ts";
import { End, isInterrupt } from "./interrupt.ts";
import { withGracePeriod } from "./lib/cancellation.ts";
import { expectJson } from "./lib/json.ts";
import type { RunResult } from "./points.ts";
import { type CallRecord, type Exit, exits, type Position, stops } from "./position.ts";
import type { EngineRun, EngineScope } from "./run.ts";
import { failureFacts } from "./shown_errors.ts";
import { batchMessages } from "./tools_step.ts";
import type { Event, Point } from "../protocol/event.ts";
import { callsOf, type Message, textOf, type ToolResult } from "../protocol/message.ts";
import type { Call } from "../protocol/part.ts";

/** Sets the exit for a value that no hook caught. The `error` hooks see a failure that they have not seen. */
export async function exitWith(scope: EngineScope, error: unknown, source: Point): Promise<void> {
  const { exit, events } = scope.engine;
  exit.offerInterrupt(error);
  exit.settle();
  if (exit.current?.status === "paused" && !isInterrupt(error)) {
    events.warn("hook.failed", "A hook failed while the run paused.", { point: source, error });
  }
  if (exit.isInterrupted) return;
  try {
    await notifyErrorHooks(scope, source, error);
  } catch (interrupt) {
    return await exitWith(scope, interrupt, source); // a hook at `error` ended or paused the run
  }
  exit.offer({ status: "failed", reason: "failure", error }, error);
}

/** Ends the work of a run that has an exit, runs the cleanup, and returns the result. */
export async function conclude(engine: EngineRun): Promise<RunResult> {
  const { loop, work, control } = engine;
  await work.unwind(() => unwindCalls(engine));
  const { position } = loop;
  const exit: Exit = engine.exit.current ?? { status: "failed" };
  if (exit.status === "failed") control.abort(stops.failure); // stops work that nothing waits for
  if (exit.status === "paused") return pausedResult(engine, exit, position);
  const { cleanup, result: status } = exits[exit.status];
  const { partial } = work;
  if (partial && engine.exit.isEnding && !cleanup && textOf(partial) !== "") loop.append([partial]);
  const open = openCalls(engine, position);
  loop.close(closingMessages(position, exit.withhold ? withheld(exit.reason ?? "") : undefined));
  if (cleanup && control.stop?.cleanup !== false) await work.cleanUp(() => cleanUp(engine, causeOf(exit), open));
  if (exit.rollback || (control.aborted && control.effects.rollback)) loop.rollBack();
  const { answer } = exit;
  const text = answer?.text ?? (cleanup && partial ? textOf(partial) : loop.transcript.lastText);
  return {
    ...emptyResult(engine, status, exit.reason),
    text,
    ...(answer?.output !== undefined && { output: answer.output }),
    ...("error" in exit && { error: exit.error }),
  };
}

/** Unwinds the calls that are open. They are saved before a client reads their results, and the cleanup waits for that save no longer than the grace period. */
async function unwindCalls({ loop, work, control, limits }: EngineRun): Promise<void> {
  const unwinders = work.takeUnwinders();
  const saved = loop.detach({ save: unwinders.length > 0 });
  const done = saved?.then(() => true);
  const isSaved = !done || await withGracePeriod(done, control, limits.grace, () => {}).catch(() => false);
  const emitters = unwinders.map((unwind) => unwind());
  const emitAll = () => emitters.forEach((emitResults) => emitResults());
  if (isSaved) emitAll();
  else work.resultsEmitted = saved?.then(emitAll);
}

/** Returns the cause of a cleanup. */
function causeOf({ status, reason = status, error }: Exit): CleanupCause {
  const ended = status === "cancelled" || error instanceof End;
  return { reason, status: exits[status].result, source: ended ? "hook" : status === "failed" ? "failure" : "stop" };
}

function pausedResult(engine: EngineRun, { questions = [] }: Exit, position: Position): RunResult {
  const text = position.at === "tools" ? textOf(position.message) : engine.loop.transcript.lastText;
  return { ...emptyResult(engine, "paused"), questions, text };
}

/** Returns the fields that every result has. */
export function emptyResult(engine: EngineRun, status: RunResult["status"], reason?: string): RunResult {
  const { id: run, session, usage, loop: { finish, transcript: { messages } } } = engine;
  const known = { ...(reason !== undefined && { reason }), ...(finish && { finish }) };
  return { status, run, session, text: "", questions: [], usage, messages, ...known };
}

/** Returns the messages that close the calls of a position. `rest` is the result of calls that did not start. */
export function closingMessages(position: Position, replacement?: ToolResult, rest = stopped): readonly Message[] {
  if (position.at !== "tools") return [];
  const records = position.calls.map((record): CallRecord => {
    if (record.state === "done") return record;
    const { call } = record;
    const { status, parts } = record.state === "pending" || record.state === "waiting" ? rest : interrupted;
    return { call, state: "done", result: { callId: call.id, name: call.name, status, parts } };
  });
  return batchMessages(position.message, records, replacement);
}

/** Returns the calls that have no result of their own. */
export function openCalls({ loop }: EngineRun, position: Position): readonly Call[] {
  if (position.at === "tools") {
    return position.calls.flatMap((record) =>
      record.state === "done" && record.result.status !== "aborted" ? [] : [record.call]
    );
  }
  if (position.at !== "turnEnd" || position.added === 0) return [];
  const [message, answer] = loop.transcript.messages.slice(-position.added);
  if (message?.role !== "assistant" || answer?.role !== "tool") return [];
  const aborted = new Set(answer.results.flatMap(({ callId, status }) => status === "aborted" ? [callId] : []));
  return callsOf(message).filter(({ id }) => aborted.has(id)).map(({ type: _, ...call }) => call);
}

/** Returns the fields of an output for the last event. An output that is not JSON, which only a hook can have made, is reported and left out. */
function jsonOutput({ events }: EngineRun, output: unknown): { readonly output?: unknown } {
  if (output === undefined) return {};
  try {
    expectJson("Cannot emit the output", output);
    return { output };
  } catch (error) {
    events.report(error);
    return {};
  }
}

/** Returns the last event of a run. */
export function lastEvent(
  engine: EngineRun,
  { status, text, reason, finish, output, questions, usage, error }: RunResult,
): Event {
  switch (status) {
    case "paused":
      return { type: "run.paused", questions, usage };
    case "failed":
      return {
        type: "run.failed",
        error: engine.events.report(error),
        message: "The run failed.",
        ...failureFacts(error),
        usage,
      };
    case "aborted":
      return { type: "run.aborted", reason: reason ?? stops.stop.reason, text, usage };
    default:
      return {
        type: "run.finished",
        status,
        text,
        usage,
        ...(reason !== undefined && { reason }),
        ...(finish && { finish }),
        ...jsonOutput(engine, output),
      };
  }
}
