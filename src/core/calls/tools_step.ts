/**
 * The tools step: the calls of one response go in one after another, run in parallel, and come out one after another. A call that must run alone
 * is a group of its own, and each group does all three before the next one begins.
 *
 * The step accepts call records in any state. A fresh batch, an answered question and a crash are the same code.
 *
 * @module
 */
import { End, isInterrupt, Pause, Paused } from "../hooks/interrupt.ts";
import { OpenCall } from "./call.ts";
import { announceResult, batchMessages, type Cut, cutOf, reasonOf, resultOfCall } from "./batch.ts";
import { executeCall } from "./execute.ts";
import { groupsOf } from "./groups.ts";
import { decideOnError } from "../run/failure.ts";
import { notRun, stopped, withheld } from "./outcome.ts";
import type { AllowedCall, AnsweredQuestion, CallRecord, Move, PositionAt } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import type { Checkpoint, Step } from "../run/step.ts";

/** The decision to execute a call. */
type Execute = Extract<OpenCall["decision"], { type: "execute" }>;

/** A batch in progress. */
interface Batch {
  readonly scope: StepScope;
  /** The position. Its `calls` are `records`. */
  readonly position: PositionAt<"tools">;
  /** The records of all calls. The step updates them until it returns. */
  readonly records: CallRecord[];
  readonly checkpoint: Checkpoint;
  /** Saves the records, if a store outlives the process. */
  readonly save: (() => Promise<void>) | undefined;
}

/** Runs the calls without a reviewed result. Leads to `turnEnd`, or pauses for the calls that wait for a person. */
export const runTools: Step<StepScope, "tools"> = async (scope, { turn, message, calls }, checkpoint) => {
  const { engine } = scope;
  const { loop, durable } = engine;
  const records = [...calls];
  const position = { at: "tools", turn, message, calls: records } as const;
  const batches = loop.counters.batches + 1;
  await begin(checkpoint, position, batches);
  const batch: Batch = { scope, position, records, checkpoint, save: durable ? () => checkpoint(position) : undefined };
  const batchId = `${engine.id}:${batches}`;
  const groups = (await groupsOf(scope, position)).map((group) => openCalls(batch, group, batchId));
  for (const [index, calls] of groups.entries()) {
    if (index > 0) await batch.save?.(); // a crash does not repeat the hooks of a finished group
    const move = await runGroup(batch, calls, groups.slice(index + 1).flat());
    if (move) return move;
  }
  return commit(batch);
};

function begin(checkpoint: Checkpoint, position: PositionAt<"tools">, batches: number): Promise<void> {
  return checkpoint(position, { counters: { batches }, save: false });
}

function openCalls({ scope, position, records }: Batch, group: readonly number[], batchId: string): OpenCall[] {
  const { engine: { limits, loop } } = scope;
  const room = limits.calls - (loop.counters.calls - records.length);
  return group.flatMap((index) => {
    const record = records[index];
    const place = { turn: position.turn, batchId, index, overLimit: index >= room };
    return record ? [new OpenCall(scope, record, place)] : [];
  });
}

/** Runs the three phases of one group. Returns the move that ends the step, if the calls of `later` groups may not run. */
async function runGroup(
  batch: Batch,
  calls: readonly OpenCall[],
  later: readonly OpenCall[],
): Promise<Move | undefined> {
  const { scope: { engine }, position } = batch;
  const { loop } = engine;
  const finished = engine.onUnwind(() => abandon(batch, [...calls, ...later]));
  try {
    loop.check();
    const cut = await enter(calls);
    if (!cut) await execute(batch, calls);
    engine.gather();
    for (const call of calls) {
      await leave(call, cut);
      if (!call.waiting) finish(batch, call, cut);
    }
    const fatal = await fatalErrors(batch.scope, calls);
    const waiting = calls.filter((call) => call.waiting);
    const isOver = fatal.length > 0 || engine.isEnding;
    if (waiting.length > 0 && !isOver) return pause(batch, waiting, cut);
    for (const call of waiting) finish(batch, call, cut);
    if (loop.position !== position) return {}; // the run ended without this step
    if (!isOver) return undefined;
    for (const call of later) finish(batch, call, cut ?? cutOf(call) ?? { reason: "a hook failed" });
    return { ...commit(batch), ...(fatal.length > 0 && { error: { thrown: fatal[0] } }) };
  } finally {
    finished();
  }
}

/** 1. In: one call after another. Returns the reason why no call may run, if there is one. */
async function enter(calls: readonly OpenCall[]): Promise<Cut | undefined> {
  for (const call of calls) {
    call.onion = call.enter();
    await call.parked.promise;
    call.waiting = call.decision?.type === "ask";
    const cut = cutOf(call);
    if (!cut) continue;
    for (const each of calls) each.waiting = cut.pause !== undefined;
    return cut;
  }
  return undefined;
}

/** 2. Execute: all allowed calls in parallel. `running` is saved before the first one starts. */
async function execute(batch: Batch, calls: readonly OpenCall[]): Promise<void> {
  const { scope: { engine }, records, save } = batch;
  const allowed: Promise<void>[] = [];
  for (const call of calls) {
    const { decision, record, place } = call;
    if (decision?.type !== "execute") continue;
    records[place.index] = { call: record.call, state: "running", ...allowedOf(call, decision) };
  }
  if (save && calls.some(({ decision }) => decision?.type === "execute")) await save();
  if (engine.control.aborted) return;
  for (const call of calls) if (call.decision?.type === "execute") allowed.push(executeOne(batch, call, call.decision));
  await Promise.all(allowed);
}

async function executeOne(
  { records, position, checkpoint, save }: Batch,
  call: OpenCall,
  decision: Execute,
): Promise<void> {
  const { record, place: { index } } = call;
  try {
    call.raw = await executeCall(call, decision);
    const { error: _, ...raw } = call.raw; // a thrown value is not JSON
    records[index] = { call: record.call, state: "ran", raw, ...allowedOf(call, decision) };
  } catch (error) {
    call.failures.push(error);
    call.raw = stopped;
    call.waiting = error instanceof Pause;
    if (error instanceof Pause) {
      records[index] = waitingRecord(call, error);
      await checkpoint(position, { answers: takenAnswers(call), save: false });
    }
  }
  if (save) await save();
}

/** Marks the answers that a paused tool has received: its new question needs an answer of its own. */
function takenAnswers({ scope: { engine: { loop } }, record: { call } }: OpenCall): readonly AnsweredQuestion[] {
  return loop.answers.map((answered) =>
    answered.answer.callId?.startsWith(`${call.id}/`) ? { ...answered, taken: true } : answered
  );
}

function allowedOf({ note }: OpenCall, { tool: { name }, json: input }: Execute): AllowedCall {
  return note === undefined ? { name, input } : { name, input, note };
}

function waitingRecord({ record: { call } }: OpenCall, { questions, saved }: Pause): CallRecord {
  return { call, state: "waiting", questions, ...(saved !== undefined && { saved }) };
}

/** 3. Out: one call after another. Each onion ends before the next one continues. */
async function leave(call: OpenCall, cut: Cut | undefined): Promise<void> {
  const { scope: { engine }, decision, record, gate, raw } = call;
  call.waiting &&= !engine.isEnding;
  if (!decision || call.waiting) call.reject(new Paused(record.call.id));
  else gate.resolve(raw ?? (decision.type === "answer" ? decision.result : notRun(reasonOf(cut ?? cutOf(call)))));
  await call.onion;
  if (call.failures.some((error) => error instanceof Pause)) call.waiting = !engine.isEnding;
}

/** Records and announces the result of a call that has left. */
function finish({ records, scope }: Batch, call: OpenCall, cut: Cut | undefined): void {
  if (scope.engine.loop.detached) throw new End("the run is over");
  records[call.place.index] = {
    call: call.record.call,
    state: "done",
    result: announceResult(scope, call, resultOfCall(call, cut)),
  };
}

/** Unwinds the open calls of a run that ended without waiting for them. */
function abandon(batch: Batch, calls: readonly OpenCall[]): void {
  for (const call of calls) {
    call.reject(new End("the run is over"));
    if (batch.records[call.place.index]?.state === "done") continue;
    const result = announceResult(batch.scope, call, stopped);
    batch.records[call.place.index] = { call: call.record.call, state: "done", result };
  }
}

/** Ends the step: all calls have results, which enter the transcript together. */
function commit({ scope: { engine: { loop } }, position, records }: Batch): Move {
  const { exit } = loop;
  const add = batchMessages(position.message, records, exit?.withhold ? withheld(exit.reason ?? "") : undefined);
  return { to: { at: "turnEnd", turn: position.turn, added: add.length }, add };
}

/** Pauses the run. It continues with the records as they are. */
function pause({ position, records }: Batch, waiting: readonly OpenCall[], cut: Cut | undefined): Move {
  for (const call of waiting) {
    const { decision, record, place } = call;
    const questions = decision?.type === "ask" && !cut?.pause ? [decision.question] : [];
    const isUndecided = records[place.index]?.state === "pending"; // a hook paused the run, not the call
    if (questions.length > 0 || isUndecided) records[place.index] = { call: record.call, state: "waiting", questions };
  }
  const questions = waiting.flatMap(({ decision, failures }) => {
    if (decision?.type === "ask") return [decision.question];
    return failures.find((error) => error instanceof Pause)?.questions ?? [];
  });
  return { to: position, error: { thrown: cut?.pause ?? new Pause(questions) } };
}

/** Runs the `error` hooks for hooks that failed. Returns the failures that end the run. */
async function fatalErrors(scope: StepScope, calls: readonly OpenCall[]): Promise<readonly unknown[]> {
  const { engine } = scope;
  const fatal: unknown[] = [];
  for (const call of calls) {
    for (const error of call.failures) {
      if (!call.waiting) {
        if (await isFatal(scope, call, error)) fatal.push(error);
      } else if (!isInterrupt(error)) {
        engine.events.warn("hook.failed", "A hook failed while its call waited.", { point: "tool", error });
      }
    }
  }
  const others = engine.control.aborted ? [] : fatal.slice(1); // the result of the run reports the first
  for (const error of others) if (!isInterrupt(error)) engine.events.report(error);
  return fatal;
}

async function isFatal(scope: StepScope, { record: { call } }: OpenCall, error: unknown): Promise<boolean> {
  const { engine } = scope;
  if (isInterrupt(error) || engine.control.aborted || engine.judged.has(error)) return true;
  const failure = { error, source: "tool", recoverable: false, attempt: 1, call } as const;
  const { type } = await decideOnError(scope, failure);
  return type === "abort";
}
