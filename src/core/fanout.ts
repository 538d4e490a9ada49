/**
 * The fan-out: the calls of one response go in one after another, run all at once, and come out one after another.
 *
 * @module
 */
import type { Question } from "../protocol/event.ts";
import {
  type AssistantMessage,
  type CallResult,
  callsOf,
  type ContentPart,
  type ToolResult,
} from "../protocol/message.ts";
import type { PendingResult } from "../protocol/session.ts";
import { Entry } from "./entry.ts";
import { judge } from "./failure.ts";
import { isInterrupt, Pause, Paused } from "./interrupt.ts";
import type { Live } from "./live.ts";
import { perform } from "./perform.ts";
import type { Scope } from "./scope.ts";

/** A batch to run: the message that makes the calls, and the results of those that were answered before a pause. */
export interface Batch {
  readonly message: AssistantMessage;
  readonly turn: number;
  readonly results?: readonly PendingResult[];
  /** Whether it goes on after a pause. */
  readonly resumed?: boolean;
}

/** Why nothing of a batch may run. */
interface Cut {
  readonly reason: string;
  readonly pause?: Pause;
}

/** Runs one batch and adds it to the transcript: one result for each call, in the model's order, whatever happens. */
export async function runBatch(live: Live, scope: Scope, batch: Batch): Promise<readonly CallResult[]> {
  const { message, results: before = [], resumed = false } = batch;
  const answered = new Map(before.map((result) => [result.callId, result]));
  const entries = enter(live, batch, answered);
  live.unfinished = message;
  live.open = entries.map((entry) => entry.call);

  const cut = await goIn(live, scope, entries, resumed);
  if (!cut) await Promise.all(entries.map(work));
  for (const entry of entries) {
    const result = await comeOut(live, scope, entry, cut);
    if (result) answered.set(entry.call.id, result);
  }

  live.open = [];
  live.unfinished = undefined;
  if (entries.some((entry) => entry.waiting) && !live.ended && !live.aborted) {
    const pause = cut?.pause ?? new Pause(questionsOf(entries));
    live.pending = { questions: pause.questions, batch: { message, results: [...answered.values()] } };
    throw pause;
  }
  const kept = commit(live, message, answered);
  await settleFailures(live, scope, entries);
  live.checkpoint();
  return kept;
}

/** The entries of the calls that have no result yet. */
function enter(live: Live, { message, turn }: Batch, answered: ReadonlyMap<string, unknown>): Entry[] {
  live.batches++;
  const batchId = `${live.id}:${live.batches}`;
  const pending = live.pending;
  live.pending = undefined;
  const asked = new Map(pending?.questions.map((question) => [question.callId, question.input]));
  const entries: Entry[] = [];
  for (const [index, { type: _, ...call }] of callsOf(message).entries()) {
    if (answered.has(call.id)) continue;
    if (!pending) live.calls++;
    const over = !pending && live.calls > live.limits.calls;
    entries.push(new Entry(live, call, index, batchId, turn, over, live.answers.get(call.id), asked.get(call.id)));
  }
  return entries;
}

/** ① One after another; gives why nothing may run, where nothing may. */
async function goIn(live: Live, scope: Scope, entries: readonly Entry[], resumed: boolean): Promise<Cut | undefined> {
  const { tool } = live.blueprint.onions;
  for (const entry of entries) {
    const { call, index, batchId, turn } = entry;
    live.announce(scope.emit, { type: "tool.started", turn, call: call.id, name: call.name, batch: batchId, index });
    entry.onion = tool(entry.context(scope, resumed), entry).then(
      (result) => {
        entry.result = result;
        entry.parked.resolve();
      },
      (error: unknown) => {
        entry.failed = { error };
        entry.parked.resolve();
      },
    );
    await entry.parked.promise;
    const cut = cutBy(live, entry);
    if (cut?.pause) { for (const each of entries) each.waiting = true; }
    if (cut) return cut;
    entry.waiting = entry.step?.type === "ask";
  }
  return undefined;
}

function cutBy(live: Live, { failed }: Entry): Cut | undefined {
  if (failed?.error instanceof Pause) return { reason: "the run was paused", pause: failed.error };
  if (live.ended) return { reason: live.ended.reason };
  if (live.aborted) return { reason: "the run was stopped" };
  return failed && { reason: "a hook failed" };
}

/** ② The work. A failure is that call's result; siblings go on. */
async function work(entry: Entry): Promise<void> {
  if (entry.step?.type !== "execute") return;
  try {
    entry.raw = await perform(entry, entry.step);
  } catch (error) {
    entry.failed = { error };
    entry.waiting = error instanceof Pause;
    if (!entry.waiting) entry.raw = notRun("the run was ended");
  }
}

/** ③ One after another: each onion ends before the next goes on. Gives the result, where there is one. */
async function comeOut(
  live: Live,
  scope: Scope,
  entry: Entry,
  cut: Cut | undefined,
): Promise<PendingResult | undefined> {
  const { step, call, gate, turn, waiting } = entry;
  if (!step || waiting) {
    gate.promise.catch(() => {}); // where nobody waits at it
    gate.reject(new Paused(call.id));
  } else {
    gate.resolve(entry.raw ?? (step.type === "answer" ? step.result : notRun(cut?.reason ?? "the run was ended")));
  }
  await entry.onion;
  if (waiting) return undefined;
  const result = resultOf(entry, cut, live.limits.output);
  const { context: _, ...shown } = result;
  live.announce(scope.emit, { type: "tool.finished", turn, call: call.id, result: shown });
  return result;
}

/** What is kept of a call: never a result that a hook failed to review. */
function resultOf({ call, result, failed, step }: Entry, cut: Cut | undefined, limit: number): PendingResult {
  const { status, parts, context } = result ??
    (failed && !isInterrupt(failed.error) || step ? withheld : notRun(cut?.reason ?? "the run was ended"));
  return { callId: call.id, name: call.name, status, parts: bounded(parts, limit), ...(context && { context }) };
}

const withheld: ToolResult = {
  type: "result",
  status: "error",
  parts: [{ type: "text", text: "Withheld: a hook failed." }],
};

function notRun(why: string): ToolResult {
  return { type: "result", status: "aborted", parts: [{ type: "text", text: `Not run: ${why}.` }] };
}

/** Texts cut to `limit` characters, after every hook has seen them whole. */
function bounded(parts: readonly ContentPart[], limit: number): readonly ContentPart[] {
  let left = limit;
  return parts.map((part) => {
    if (part.type !== "text") return part;
    const { length } = part.text;
    const fits = length <= left;
    const text = fits ? part.text : `${part.text.slice(0, left)}\n[cut: ${left} of ${length} characters]`;
    left = Math.max(0, left - length);
    return fits ? part : { ...part, text };
  });
}

function questionsOf(entries: readonly Entry[]): Question[] {
  return entries.flatMap(({ step, call, waiting, failed }) => {
    if (!waiting) return [];
    if (step?.type === "ask") {
      return [{ callId: call.id, tool: step.name, input: step.input, questions: step.questions }];
    }
    return failed?.error instanceof Pause ? failed.error.questions : [];
  });
}

/** Adds the message and its results to the transcript, and after them what they say beside. */
function commit(
  live: Live,
  message: AssistantMessage,
  answered: ReadonlyMap<string, PendingResult>,
): readonly CallResult[] {
  const context: string[] = [];
  const results = callsOf(message).map(({ id, name }): CallResult => {
    const { context: said = [], ...result } = answered.get(id) ??
      { callId: id, name, ...pick(notRun("the run was ended")) };
    context.push(...said);
    return result;
  });
  live.push(message, { role: "tool", results });
  if (context.length > 0) {
    live.push({ role: "user", from: "context", parts: context.map((text) => ({ type: "text", text })) });
  }
  return results;
}

function pick({ status, parts }: ToolResult): Pick<PendingResult, "status" | "parts" | "context"> {
  return { status, parts };
}

/** Lets `error` decide about hooks that failed: to abort is the default. What ends or pauses the run passes. */
async function settleFailures(live: Live, scope: Scope, entries: readonly Entry[]): Promise<void> {
  for (const { failed } of entries) {
    if (!failed || failed.error instanceof Paused) continue;
    const { error } = failed;
    if (error instanceof Pause) live.pending = { questions: error.questions };
    if (isInterrupt(error) || live.aborted || live.judged?.error === error) throw error;
    const decision = await judge(live, scope, { error, source: "tool", recoverable: false, attempt: 1 });
    if (decision.type === "abort") throw error;
  }
}
