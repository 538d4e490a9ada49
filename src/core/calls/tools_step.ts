/**
 * The tools step: the calls of one response go in one after another, run in parallel, and come out one after another. A call that must run alone
 * is a group of its own, and each group does all three before the next one begins.
 *
 * The step accepts call records in every state. A fresh batch, an answered question and a crash are the same code.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import { End, Pause } from "../hooks/interrupt.ts";
import { skipped } from "../hooks/results.ts";
import type { Move } from "../run/position.ts";
import type { Step } from "../run/step.ts";
import type { StepScope } from "../run/run.ts";
import { announceResult, batchMessages, type Cut, cutOf, fatalErrors, keptResult, resultOfCall } from "./batch.ts";
import { OpenCall } from "./call.ts";
import { type CallEntry, groupsOf } from "./groups.ts";
import { stopped, unfinished, withheld } from "./outcome.ts";
import { type Batch, enter, execute, leave, waitingRecord } from "./phases.ts";

/** Runs the calls without a reviewed result. Leads to `turnEnd`, or pauses for the calls that wait for a person. */
export const runTools: Step<StepScope, "tools"> = async (scope, { turn, message, calls }, checkpoint) => {
  const { engine } = scope;
  const { limits, loop } = engine;
  const records = [...calls];
  const position = { at: "tools", turn, message, calls: records } as const;
  const batches = loop.counters.batches + 1;
  void checkpoint(position, { counters: { batches }, save: false });
  const batch: Batch = { scope, position, records, checkpoint };
  const batchId = `${engine.id}:${batches}`;
  const room = limits.calls - (loop.counters.calls - records.length); // the counter contains the calls of this batch
  const overLimit = skipped(`Not run: this run may make ${limits.calls} calls.`);
  const open = ([index, record]: CallEntry) => {
    const barred = unfinished(record.call, loop.finish) ?? (index >= room ? overLimit : undefined);
    return new OpenCall(scope, record, { turn, batchId, index, barred });
  };
  const groups = (await groupsOf(scope, position)).map((group) => group.map(open));
  for (const [index, calls] of groups.entries()) {
    if (index > 0) await checkpoint(position); // a crash does not repeat the hooks of a finished group
    const move = await runGroup(batch, calls, groups.slice(index + 1).flat());
    if (move) return move;
  }
  return commit(batch);
};

/** Runs the three phases of one group. Returns the move that ends the step, if the calls of `later` groups may not run. */
async function runGroup(
  batch: Batch,
  calls: readonly OpenCall[],
  later: readonly OpenCall[],
): Promise<Move | undefined> {
  const { scope: { engine } } = batch;
  const finished = engine.work.onUnwind(() => abandon(batch, [...calls, ...later]));
  try {
    engine.loop.safePlace();
    const cut = await enter(calls);
    let isSaved = await execute(batch, calls, cut);
    engine.events.gather();
    for (const call of calls) {
      const left = leave(call, cut);
      if (left) await left;
      if (call.failures.some((error) => error instanceof Pause)) call.waiting = !engine.isEnding;
      if (call.waiting) continue;
      if (!isSaved) isSaved = await save(batch);
      finish(batch, call, cut);
    }
    const fatal = calls.some(({ failures }) => failures.length > 0) ? await fatalErrors(batch.scope, calls) : [];
    const waiting = calls.filter((call) => call.waiting);
    const isOver = fatal.length > 0 || engine.isEnding;
    if (waiting.length > 0 && !isOver) return pause(batch, waiting, cut);
    if (!isSaved) await save(batch);
    for (const call of waiting) finish(batch, call, cut);
    if (!isOver) return undefined;
    for (const call of later) finish(batch, call, cut ?? cutOf(call) ?? { reason: "a hook failed" });
    return { ...commit(batch), ...(fatal.length > 0 && { error: { thrown: fatal[0] } }) };
  } finally {
    finished();
  }
}

/** Saves the calls. */
async function save({ checkpoint, position }: Batch): Promise<true> {
  await checkpoint(position);
  return true;
}

/** Finishes a call that has left. */
function finish(batch: Batch, call: OpenCall, cut: Cut | undefined): void {
  if (batch.scope.engine.loop.detached) throw new End("the run is over");
  record(batch, call, resultOfCall(call, cut))();
}

/** Records the result of a call. Returns a function that emits it. */
function record({ records }: Batch, call: OpenCall, given: ToolResult): () => void {
  const kept = keptResult(call, given);
  records[call.place.index] = { call: call.record.call, state: "done", result: kept };
  return () => announceResult(call, given, kept);
}

/** Unwinds the open calls of a run that ended without waiting for them. Returns a function that emits their results. */
function abandon(batch: Batch, calls: readonly OpenCall[]): () => void {
  const open = calls.filter(({ place: { index } }) => batch.records[index]?.state !== "done");
  for (const call of calls) call.reject(new End("the run is over"));
  const announcements = open.map((call) => record(batch, call, stopped));
  return () => {
    for (const announce of announcements) announce();
  };
}

/** Ends the step: all calls have results, which enter the transcript together. */
function commit({ scope: { engine }, position, records }: Batch): Move {
  const { current: exit } = engine.exit;
  const add = batchMessages(position.message, records, exit?.withhold ? withheld(exit.reason ?? "") : undefined);
  return { to: { at: "turnEnd", turn: position.turn, added: add.length }, add };
}

/** Pauses the run. It continues with the records as they are. */
function pause({ position, records }: Batch, waiting: readonly OpenCall[], cut: Cut | undefined): Move {
  for (const call of waiting) {
    const { decision, record, place } = call;
    const questions = decision?.type === "ask" && !cut?.pause ? [decision.question] : [];
    const isUndecided = records[place.index]?.state === "pending"; // a hook paused the run, not the call
    const isDecided = decision?.type === "execute" || questions.length > 0; // a question that was not asked is decided again
    const approval = isDecided && decision && "approval" in decision ? decision.approval : undefined;
    if (questions.length > 0 || isUndecided) records[place.index] = waitingRecord(record, questions, approval);
  }
  const questions = waiting.flatMap(({ decision, failures }) => {
    if (decision?.type === "ask") return [decision.question];
    return failures.find((error) => error instanceof Pause)?.questions ?? [];
  });
  return { to: position, error: { thrown: cut?.pause ?? new Pause(questions) } };
}
