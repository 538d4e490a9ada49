/**
 * The tools step: the calls of one response go in one after another, run in parallel, and come out one after another. A call that must run alone
 * is a group of its own, and each group does all three before the next one begins.
 *
 * The step accepts call records in every state. A fresh batch, an answered question and a crash are the same code.
 *
 * @module
 */
import { executeCall, OpenCall } from "./call.ts";
import { decideOnError } from "./failure.ts";
import { End, isInterrupt, Pause, Paused } from "./interrupt.ts";
import type { GroupContext } from "./middleware.ts";
import { bounded, interrupted, notRun, stopped, unfinished, withheld } from "./outcome.ts";
import type {
  AllowedCall,
  AnsweredQuestion,
  CallRecord,
  Checkpoint,
  Move,
  PositionAt,
  ReviewedResult,
  SavedApproval,
  Step,
} from "./position.ts";
import { skipped } from "./results.ts";
import type { StepScope } from "./run.ts";
import type { Scope } from "./scope.ts";
import type { AnyTool } from "./tool.ts";
import { contextMessages } from "./transcript.ts";
import type { AssistantMessage, CallResult, Message, ToolResult } from "../protocol/message.ts";
import type { Call } from "../protocol/part.ts";
import type { Question } from "../protocol/question.ts";

// Groups of calls: the calls of one response that overlap. A group ends before the next one begins.

/** The index and the record of a call. */
type CallEntry = readonly [index: number, record: CallRecord];

/** Splits a batch at the calls that must run alone. Returns the calls without a result. */
async function groupsOf(
  scope: StepScope,
  { turn, calls }: PositionAt<"tools">,
): Promise<readonly CallEntry[][]> {
  const { settings: { toolsByName }, definition: { groups: requests } } = scope.engine;
  const groups: CallEntry[][] = [];
  let isOpen = false;
  for (const entry of calls.entries()) { // also of finished calls: a resumed batch has the same groups
    const [, { call, state }] = entry;
    const tool = toolsByName.get(call.name);
    const mayBeAlone = requests.length > 0 || tool?.parallel !== undefined;
    const alone = mayBeAlone && await mustBeAlone(scope, { call, tool, name: call.name, turn });
    const last = groups.at(-1);
    const group = isOpen && !alone && last ? last : [];
    if (group !== last) groups.push(group);
    isOpen = !alone;
    if (state !== "done") group.push(entry);
  }
  return groups.filter((group) => group.length > 0);
}

/** Returns true if the tool or a middleware requests a group of its own for a call, or if a middleware's function throws. */
async function mustBeAlone(
  { engine, run, signal, emit, vars }: StepScope,
  of: Omit<GroupContext, keyof Scope | "parallel">,
): Promise<boolean> {
  try {
    const parallel = await isParallel(of.tool, of.call);
    const ctx: GroupContext = { run, signal, emit, vars, ...of, parallel };
    if (parallel === false) return true;
    for (const group of engine.definition.groups) if (await group(ctx) === "alone") return true;
    return false;
  } catch (error) {
    engine.events.report(error);
    return true;
  }
}

/** Returns true or false if a tool says whether a call may overlap with others; undefined if it does not. */
async function isParallel(tool: AnyTool | undefined, { input }: Call): Promise<boolean | undefined> {
  if (typeof tool?.parallel !== "function") return tool?.parallel ?? (tool?.readOnly ? true : undefined);
  const validated = await tool.input["~standard"].validate(input);
  return !validated.issues && await tool.parallel(validated.value as never); // parsed by the tool's own schema
}

// The results of a batch: one for each call, whatever cut the batch short, and the failures that end the run.

/** The reason why no call of a batch may run. */
interface Cut {
  readonly reason: string;
  readonly pause?: Pause;
}

/** Returns the reason why no further call may run, as far as this call shows. */
function cutOf(
  { scope: { engine: { exit: { current: exit }, control } }, failures }: OpenCall,
): Cut | undefined {
  const pause = failures.find((error) => error instanceof Pause);
  if (pause) return { reason: "the run was paused", pause };
  if (exit && exit.status !== "aborted" && exit.status !== "deadline") {
    return { reason: exit.reason ?? "the run was ended" };
  }
  if (exit || control.aborted) return { reason: "the run was stopped" };
  return failures.every(isInterrupt) ? undefined : { reason: "a hook failed" };
}

/** Returns the reason why a call did not run, for the model. */
function reasonOf(call: OpenCall, cut = cutOf(call)): string {
  return cut?.reason ?? "the run was ended";
}

/** Returns the result of a call. It is never a result that a hook failed to review. */
function resultOfCall(call: OpenCall, cut?: Cut): ToolResult {
  const { result, failures, decision, raw, waiting, record: { state }, scope: { engine } } = call;
  if (result && !waiting) return result;
  const reason = reasonOf(call, cut);
  if (waiting) return raw && raw !== stopped ? withheld("the run was ended") : notRun(reason);
  const threw = !engine.control.aborted && !failures.every(isInterrupt);
  if (threw || raw || decision?.type === "answer" || state === "ran") return withheld(reason);
  return state === "running" ? interrupted : notRun(reason);
}

/** Returns the result of a call as the transcript keeps it. */
function keptResult(
  { record: { call: { id, name } }, note, scope: { engine } }: OpenCall,
  given: ToolResult,
): ReviewedResult {
  const { status, parts, context = [], artifacts, handled } = given;
  const texts = note === undefined ? context : [...context, note];
  return {
    callId: id,
    name,
    status,
    parts: bounded(parts, engine.limits.output),
    ...(artifacts && { artifacts }),
    ...(handled && status === "ok" && { handled }),
    ...(texts.length > 0 && { context: texts }),
    ...(given.rewritten && given.input !== undefined && { rewritten: { input: given.input } }),
  };
}

/** Emits the result of a call. */
function announceResult(call: OpenCall, { person, silent }: ToolResult, kept: ReviewedResult): void {
  const { scope: { engine, emit }, place: { turn }, failures } = call;
  try {
    call.announce();
    const result = { ...withoutAdditions(kept), ...(silent && { parts: [] }) };
    engine.events.announce(emit, { type: "tool.finished", turn, call: kept.callId, result });
    if (person !== undefined && !silent) emit({ type: "notice", text: person });
  } catch (error) {
    failures.push(error);
  }
}

/** Returns the messages of a batch: the message with the calls, one result per call, and the context that they add. */
export function batchMessages(
  message: AssistantMessage,
  records: readonly CallRecord[],
  replacement?: ToolResult,
): readonly Message[] {
  const context: string[] = [];
  const inputs = new Map<string, unknown>();
  const results = records.map((record): CallResult => {
    const { call: { id, name } } = record;
    if (record.state !== "done" || replacement) {
      const { status, parts } = replacement ?? stopped;
      return { callId: id, name, status, parts };
    }
    const { result: reviewed } = record;
    if (reviewed.context) context.push(...reviewed.context);
    if (reviewed.rewritten) inputs.set(id, reviewed.rewritten.input);
    return withoutAdditions(reviewed);
  });
  return [replaceInputs(message, inputs), { role: "tool", results }, ...contextMessages(context, "context")];
}

/** Returns a result without what is beside it for the model. */
function withoutAdditions(reviewed: ReviewedResult): CallResult {
  if (!reviewed.context && !reviewed.rewritten) return reviewed;
  const { context: _, rewritten: __, ...result } = reviewed;
  return result;
}

/** Returns the message with other inputs of calls, by call id. */
function replaceInputs(message: AssistantMessage, inputs: ReadonlyMap<string, unknown>): AssistantMessage {
  if (inputs.size === 0) return message;
  const parts = message.parts.map((part) =>
    part.type === "call" && inputs.has(part.id) ? { ...part, input: inputs.get(part.id) } : part
  );
  return { ...message, parts };
}

/** Runs the `error` hooks for hooks that failed. Returns the failures that end the run. */
async function fatalErrors(scope: StepScope, calls: readonly OpenCall[]): Promise<readonly unknown[]> {
  const { engine } = scope;
  const fatal: unknown[] = [];
  for (const call of calls) {
    for (const error of call.failures) {
      if (!call.waiting) {
        const isKnown = isInterrupt(error) || engine.control.aborted || engine.seenErrors.includes(error);
        const failure = { error, source: "tool", recoverable: false, attempt: 1, call: call.record.call } as const;
        if (isKnown || (await decideOnError(scope, failure)).type === "abort") fatal.push(error);
      } else if (!isInterrupt(error)) {
        engine.events.warn("hook.failed", "A hook failed while its call waited.", { point: "tool", error });
      }
    }
  }
  const others = engine.control.aborted ? [] : fatal.slice(1); // the result of the run reports the first
  for (const error of others) if (!isInterrupt(error)) engine.events.report(error);
  return fatal;
}

// The three phases of a group of calls: in, execute, out.

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
}

/** 1. In: one call after another. Returns the reason why no call may run, if there is one. */
async function enter(calls: readonly OpenCall[]): Promise<Cut | undefined> {
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
async function execute(batch: Batch, calls: readonly OpenCall[], cut: Cut | undefined): Promise<boolean> {
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
function waitingRecord(
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
): AllowedCall & { readonly call: Call } {
  return note === undefined ? { call, name, input } : { call, name, input, note };
}

/** Returns a result as it is saved: a thrown value is not JSON. */
function savedResult(result: ToolResult): ToolResult {
  if (result.error === undefined) return result;
  const { error: _, ...saved } = result;
  return saved;
}

/** 3. Out: one call after another. Each onion ends before the next one continues. Returns no promise if no hook is open. */
function leave(call: OpenCall, cut: Cut | undefined): Promise<void> | undefined {
  const { scope: { engine }, decision, record, raw } = call;
  call.waiting &&= !engine.isEnding;
  if (!decision || call.waiting) call.reject(new Paused(record.call.id));
  else call.resolve(raw ?? (decision.type === "answer" ? decision.result : notRun(reasonOf(call, cut))));
  return call.passed;
}

// The step: runs the groups one after another, and saves between the phases.

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
