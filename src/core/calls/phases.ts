/**
 * The three phases of a group of calls: in, execute, out.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import type { Question } from "../../protocol/question.ts";
import { Pause, Paused } from "../hooks/interrupt.ts";
import type { AllowedCall, AnsweredQuestion, CallRecord, PositionAt, SavedApproval } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import type { Checkpoint } from "../run/step.ts";
import { type Cut, cutOf, reasonOf } from "./batch.ts";
import type { OpenCall } from "./call.ts";
import { executeCall } from "./execute.ts";
import { notRun, stopped } from "./outcome.ts";

/** The decision to execute a call. */
type Execute = Extract<OpenCall["decision"], { type: "execute" }>;

/** A batch in progress. */
export interface Batch {
  readonly scope: StepScope;
  /** The position. Its `calls` are `records`. */
  readonly position: PositionAt<"tools">;
  /** The records of all calls. The step updates them until it returns. */
  readonly records: CallRecord[];
  readonly checkpoint: Checkpoint;
}

/** 1. In: one call after another. Returns the reason why no call may run, if there is one. */
export async function enter(calls: readonly OpenCall[]): Promise<Cut | undefined> {
  for (const call of calls) {
    do {
      await call.enter();
    } while (call.revise());
    call.waiting = call.decision?.type === "ask";
    const cut = cutOf(call);
    if (!cut) continue;
    for (const each of calls) each.waiting = cut.pause !== undefined;
    return cut;
  }
  return undefined;
}

/**
 * 2. Execute: all allowed calls in parallel, or none if the batch was cut. `running` is saved before the first one starts, and all calls before any result is
 * shown. Returns true if they were saved.
 */
export async function execute(batch: Batch, calls: readonly OpenCall[], cut: Cut | undefined): Promise<boolean> {
  const { scope: { engine, engine: { limits, sink } }, position, records, checkpoint } = batch;
  for (const call of cut ? [] : calls) {
    const { decision, place } = call;
    if (decision?.type !== "execute") continue;
    records[place.index] = { ...allowedOf(call, decision), state: "running" };
  }
  const isShown = calls.some(({ waiting }) => !waiting);
  const saved = isShown ? checkpoint(position) : undefined; // no client reads a result of calls that the store does not have
  if (saved) await saved;
  if (sink.begun) await sink.begun; // if the log fails, the client learns that the run could not begin, and may begin it again
  if (cut || engine.isEnding) return isShown; // also if the save or the log failed
  const begun: Promise<void>[] = [];
  for (const call of calls) {
    if (call.decision?.type !== "execute") continue;
    begun.push(executeOne(batch, call, call.decision));
    if (begun.length % limits.parallel === 0) await undefined; // calls that wait for nothing end before many more begin
  }
  await Promise.all(begun);
  return isShown;
}

async function executeOne(
  { records, position, checkpoint, scope: { engine } }: Batch,
  call: OpenCall,
  decision: Execute,
): Promise<void> {
  const { record, place: { index } } = call;
  try {
    call.raw = await executeCall(call, decision);
    records[index] = { ...allowedOf(call, decision), state: "ran", raw: savedResult(call.raw) };
  } catch (error) {
    call.failures.push(error);
    call.raw = stopped;
    call.waiting = error instanceof Pause;
    if (error instanceof Pause) {
      const { questions, saved } = error;
      records[index] = {
        ...waitingRecord(record, questions, decision.approval),
        ...(saved !== undefined && { saved }),
      };
      void checkpoint(position, { answers: takenAnswers(call), save: false });
    }
  }
  // The save of the next turn's position follows at once, and contains the result, unless a hook waits or the run is stopped.
  const saved = checkpoint(position, { urgent: engine.control.aborted });
  if (saved) await saved;
}

/** Marks the answers that a paused tool has received: its new question needs an answer of its own. */
function takenAnswers({ scope: { engine: { loop } }, record: { call } }: OpenCall): readonly AnsweredQuestion[] {
  return loop.answers.map((answered) =>
    answered.answer.callId?.startsWith(`${call.id}/`) ? { ...answered, taken: true } : answered
  );
}

/** Returns the record of a call that waits. Its questions have no schemas: the exit of the run contains them. */
export function waitingRecord(
  { call }: CallRecord,
  questions: readonly Question[],
  approval: SavedApproval | undefined,
): Extract<CallRecord, { state: "waiting" }> {
  const texts = questions.map(({ schema: _, suggestions: __, ...question }) => question);
  return { call, state: "waiting", questions: texts, ...(approval && { approval }) };
}

/** Returns the part of a record that an allowed call has. */
function allowedOf(
  { record: { call }, note }: OpenCall,
  { tool: { name }, json: input }: Execute,
): AllowedCall & Pick<CallRecord, "call"> {
  return note === undefined ? { call, name, input } : { call, name, input, note };
}

/** Returns a result as it is saved: a thrown value is not JSON. */
function savedResult(result: ToolResult): ToolResult {
  if (result.error === undefined) return result;
  const { error: _, ...saved } = result;
  return saved;
}

/** 3. Out: one call after another. Each onion ends before the next one continues. Returns no promise if no hook is open. */
export function leave(call: OpenCall, cut: Cut | undefined): Promise<void> | undefined {
  const { scope: { engine }, decision, record, raw } = call;
  call.waiting &&= !engine.isEnding;
  if (!decision || call.waiting) call.reject(new Paused(record.call.id));
  else call.resolve(raw ?? (decision.type === "answer" ? decision.result : notRun(reasonOf(call, cut))));
  return call.passed;
}
