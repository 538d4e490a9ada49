/**
 * The tools step: the calls of one response go in one after another, run in parallel, and come out one after another. A call that must run alone
 * is a group of its own, and each group does all three before the next one begins.
 *
 * The step accepts call records in every state. A fresh batch, an answered question and a crash are the same code.
 *
 * @module
 */
import type { Execution } from "./authorize.ts";
import { type Halt, haltOf, OpenCall } from "./call.ts";
import { stopped, unfinished, withheld, withoutAdditions } from "./call_results.ts";
import { decideOnError, runsOnce } from "./error_hooks.ts";
import { skipped } from "./hook_answers.ts";
import { stepOf } from "./call_steps.ts";
import { isInterrupt, Pause } from "./interrupt.ts";
import { delay, isThenable, withGracePeriod } from "./lib/cancellation.ts";
import type { GroupContext } from "./middleware.ts";
import type { ErrorDecision, ExecuteContext } from "./points.ts";
import { type PointPolicy, policyOf } from "./policy.ts";
import type { AnsweredQuestion, CallRecord, Checkpoint, Move, PositionAt, ReviewedResult, Step } from "./position.ts";
import type { StepScope } from "./run.ts";
import type { Change, Scope } from "./scope.ts";
import { readable, resultOfError } from "./shown_errors.ts";
import type { AnyTool } from "./tool.ts";
import { toolResultOf, toResult } from "./tool_io.ts";
import { contextMessages } from "./transcript.ts";
import type { AssistantMessage, Message, ToolResult } from "../protocol/message.ts";
import type { Call } from "../protocol/part.ts";

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

// The step: runs the groups one after another, and saves between their phases.

/** A batch in progress. */
interface Batch {
  readonly scope: StepScope;
  readonly position: PositionAt<"tools">;
  /** The calls of the position. Each open call updates its own. */
  readonly records: CallRecord[];
  readonly checkpoint: Checkpoint;
}

/** Runs the calls without a reviewed result. Leads to `turnEnd`, or pauses for the calls that wait for a person. */
export const runTools: Step<"tools"> = async (scope, { turn, message, calls }, checkpoint) => {
  const { loop } = scope.engine;
  const records = [...calls];
  const position = { at: "tools", turn, message, calls: records } as const;
  const batches = loop.counters.batches + 1;
  void checkpoint(position, { counters: { batches }, save: false });
  const batch: Batch = { scope, position, records, checkpoint };
  const groups = openGroups(batch, await groupsOf(scope, position));
  for (const [index, calls] of groups.entries()) {
    if (index > 0) await checkpoint(position); // a crash does not repeat the hooks of a finished group
    const move = await runGroup(batch, calls, groups.slice(index + 1).flat());
    if (move) return move;
  }
  return commit(batch);
};

/** Opens the calls of all groups. Those beyond the limit of the run are barred, and those of a response that was cut. */
function openGroups(
  { scope, position, position: { turn }, records, checkpoint }: Batch,
  groups: readonly CallEntry[][],
): readonly OpenCall[][] {
  const { id, limits, loop: { counters, finish } } = scope.engine;
  const batchId = `${id}:${counters.batches}`;
  const callsLeft = limits.calls - (counters.calls - records.length); // the counter contains the calls of this batch
  const save = () => checkpoint(position);
  const overLimit = skipped(`Not run: this run may make ${limits.calls} calls.`);
  return groups.map((group) =>
    group.map(([index, record]) => {
      const barred = unfinished(record.call, finish) ?? (index >= callsLeft ? overLimit : undefined);
      return new OpenCall(scope, record, { turn, batchId, index, barred, records, save });
    })
  );
}

/** Runs one group: its calls enter, execute and leave. Returns the move that ends the step, if the calls of `later` groups may not run. */
async function runGroup(
  batch: Batch,
  calls: readonly OpenCall[],
  later: readonly OpenCall[],
): Promise<Move | undefined> {
  const { engine } = batch.scope;
  const finished = engine.work.onUnwind(() => abandon([...calls, ...later]));
  try {
    engine.loop.safePlace();
    const halt = await enter(calls);
    const wasSaved = await execute(batch, calls, halt);
    engine.events.gather();
    const isSaved = await leave(batch, calls, { halt, isSaved: wasSaved });
    return await moveAfter(batch, calls, { halt, isSaved, later });
  } finally {
    finished();
  }
}

/** Closes the calls of a run that ended without waiting for them. Returns a function that emits their results. */
function abandon(calls: readonly OpenCall[]): () => void {
  const emitters = calls.filter(({ phase }) => phase.at !== "closed").map((call) => call.abandon());
  return () => {
    for (const emit of emitters) emit();
  };
}

/** 1. One call after another enters its hooks, and is decided. Returns the reason why no call may run, if there is one. */
async function enter(calls: readonly OpenCall[]): Promise<Halt | undefined> {
  for (const call of calls) {
    await call.enter();
    const halt = haltOf(call);
    if (halt) return halt;
  }
  return undefined;
}

/**
 * 2. All allowed calls execute in parallel, or none if the batch was halted. `running` is saved before the first one starts, and all calls before any result is
 * shown. Returns true if they were saved.
 */
async function execute(batch: Batch, calls: readonly OpenCall[], halt: Halt | undefined): Promise<boolean> {
  const { scope: { engine, engine: { limits } }, position, checkpoint } = batch;
  for (const call of halt ? [] : calls) call.allow();
  const isShown = halt ? !halt.pause : calls.some((call) => !call.asks);
  const saved = isShown ? checkpoint(position) : undefined; // no client reads a result of calls that the store does not have
  if (saved) await saved;
  if (halt || engine.isEnding) return isShown; // also if the save failed
  const running: Promise<void>[] = [];
  for (const call of calls) {
    if (call.phase.at !== "allowed") continue;
    running.push(executeOne(batch, call));
    if (running.length % limits.parallel === 0) await undefined; // calls that wait for nothing end before many more begin
  }
  await Promise.all(running);
  return isShown;
}

async function executeOne({ scope: { engine }, position, checkpoint }: Batch, call: OpenCall): Promise<void> {
  await call.execute(executeTool);
  if (call.isWaiting) void checkpoint(position, { answers: takenAnswers(call), save: false });
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

/** A group whose calls have been executed. */
interface GroupEnd {
  /** The reason why none was executed, if there is one. */
  readonly halt: Halt | undefined;
  /** True if the calls were saved. */
  readonly isSaved: boolean;
}

/**
 * 3. One call after another leaves its hooks, and is closed with its result, unless it waits. The hooks of a call end before those of the next one continue.
 * Returns true if the calls were saved.
 */
async function leave(batch: Batch, calls: readonly OpenCall[], { halt, isSaved }: GroupEnd): Promise<boolean> {
  let saved = isSaved;
  for (const call of calls) {
    await call.leave(halt);
    if (call.isWaiting) continue;
    if (!saved) await batch.checkpoint(batch.position);
    saved = true;
    call.close(halt);
  }
  return saved;
}

/** 4. Returns the move that ends the step: the run pauses for the calls that wait, or ends. Returns none if the next group follows. */
async function moveAfter(
  batch: Batch,
  calls: readonly OpenCall[],
  { halt, isSaved, later }: GroupEnd & { readonly later: readonly OpenCall[] },
): Promise<Move | undefined> {
  const { scope, scope: { engine }, checkpoint, position } = batch;
  const fatal = calls.some(({ failures }) => failures.length > 0) ? await failuresThatEndRun(scope, calls) : [];
  const waiting = calls.filter((call) => call.isWaiting);
  const isOver = fatal.length > 0 || engine.isEnding;
  if (waiting.length > 0 && !isOver) return pause(batch, waiting, halt);
  if (!isSaved) await checkpoint(position);
  for (const call of waiting) call.close(halt);
  if (!isOver) return undefined;
  for (const call of later) call.close(halt ?? haltOf(call) ?? { reason: "a hook failed" });
  return { ...commit(batch), ...(fatal.length > 0 && { error: { thrown: fatal[0] } }) };
}

/** Ends the step: all calls have results, which enter the transcript together. */
function commit({ scope: { engine }, position: { turn, message }, records }: Batch): Move {
  const { current: exit } = engine.exit;
  const add = batchMessages(message, records, exit?.withhold ? withheld(exit.reason ?? "") : undefined);
  return { to: { at: "turnEnd", turn, added: add.length }, add };
}

/** Pauses the run. It continues with the records as they are. */
function pause({ position }: Batch, waiting: readonly OpenCall[], halt: Halt | undefined): Move {
  for (const call of waiting) call.pause(halt);
  const questions = waiting.flatMap((call) => call.questions);
  return { to: position, error: { thrown: halt?.pause ?? new Pause(questions) } };
}

// The execution of an allowed call: its `execute` hooks, a slot, and the grace period of a tool that ignores its signal.

const executePolicy: PointPolicy<ExecuteContext, Change, ToolResult, OpenCall> = /* @__PURE__ */ policyOf("execute", {
  core: runTool,
  retry: (ctx, call) => call.mayRepeat(ctx.tool) ? ctx : undefined,
  hint: ({ tool }) => runsOnce(tool.name),
  derive: (inner, outer, call) => inner.emit === outer.emit ? inner : { ...inner, progress: progressOf(inner, call) },
  finalize: ({ name, returned }) => toolResultOf(name, "execute", returned),
});

/** Executes the tool, again if the `error` hooks decide so and it may run again. Returns a failure as a result. Throws only an interrupt. */
async function executeTool(call: OpenCall, decision: Execution): Promise<ToolResult> {
  const { engine } = call.scope;
  const { scope: { signal }, json } = decision;
  const ctx = executeContext(call, decision);
  for (let attempt = 1, after = 0;; attempt++) {
    try {
      if (attempt > 1) await delay(after, signal); // also without a wait: timers must run, such as that of the time limit
      const returned = await engine.definition.onions.execute(ctx, call, executePolicy);
      return returned.input === undefined ? { ...returned, input: json } : returned;
    } catch (thrown) {
      const next = await afterFailure(call, decision, { error: readable(thrown), attempt });
      if (next.type === "result") return { ...next, input: json };
      after = next.after;
    }
  }
}

function executeContext(call: OpenCall, { tool, input, scope }: Execution): ExecuteContext {
  const { scope: { engine }, record: { call: requestedCall }, place: { turn, index, batchId } } = call;
  const { run, signal, emit, vars } = scope;
  return {
    run,
    signal,
    emit,
    vars,
    call: requestedCall,
    tool,
    input,
    callId: requestedCall.id,
    batchId,
    callIndex: index,
    turn,
    idempotencyKey: `${engine.id}:${turn}:${index}`,
    progress: progressOf(scope, call),
    mayRepeat: () => call.mayRepeat(tool),
    "~call": call,
  };
}

/** Returns a function that emits `tool.progress` while the tool runs. */
function progressOf({ emit }: Scope, call: OpenCall): (data: unknown) => void {
  return (data) => {
    if (call.phase.at !== "running") return;
    emit({ type: "tool.progress", turn: call.place.turn, call: call.record.call.id, data });
  };
}

/** Runs the `error` hooks for a failed attempt. Returns the result of the failure, or the decision to try again. Throws an interrupt. */
async function afterFailure(
  call: OpenCall,
  { tool, tool: { name }, scope }: Execution,
  { error, attempt }: { readonly error: unknown; readonly attempt: number },
): Promise<ToolResult | Extract<ErrorDecision, { type: "retry" }>> {
  const { scope: { engine }, record: { call: requestedCall } } = call;
  if (isInterrupt(error)) throw error;
  if (engine.control.aborted) return stopped;
  const failure = {
    error,
    source: "execute",
    recoverable: call.mayRepeat(tool),
    attempt,
    name,
    call: requestedCall,
  } as const;
  const decision = await decideOnError({ ...scope, engine }, failure);
  if (decision.type === "abort") call.fail(error);
  return decision.type === "retry" && !scope.signal.aborted ? decision : { ...resultOfError(name, error), error };
}

/** The core of `execute`: runs the tool in a slot. */
async function runTool(ctx: ExecuteContext, call: OpenCall): Promise<ToolResult> {
  const { engine } = call.scope;
  const { control, steering, limits, events } = engine;
  const { tool } = ctx;
  const cancellation = control.of(ctx.signal);
  if (cancellation.aborted) throw cancellation.reason;
  const isSubagent = tool["~execute"] !== undefined && !tool.definition.provider;
  const slots = isSubagent ? engine.agentSlots : engine.slots; // the tools of a subagent need a slot while it runs
  const slot = slots.take(cancellation);
  if (slot) await slot;
  try {
    if (tool["~execute"]) return await tool["~execute"](ctx as never, call as never); // it is made for these two
    if (steering.skipped) return steering.skipped;
    const returned = tool.execute(ctx.input as never, { ...ctx, step: stepOf(ctx, call) }); // parsed by the tool's own schema
    if (!isThenable(returned)) return toResult(returned);
    return toResult(
      await withGracePeriod(Promise.resolve(returned), cancellation, limits.grace, () => {
        const message = `The tool ${tool.name} did not stop when its signal aborted.`;
        events.warn("tool.abandoned", message, { point: "execute" });
      }),
    );
  } finally {
    slots.give();
  }
}

// The messages of a batch, and the failures that end the run.

/** Returns the messages of a batch: the message with the calls, one result per call, and the context that they add. */
export function batchMessages(
  message: AssistantMessage,
  records: readonly CallRecord[],
  replacement?: ToolResult,
): readonly Message[] {
  const results = records.map((record): ReviewedResult => {
    if (record.state === "done" && !replacement) return record.result;
    const { call: { id: callId, name } } = record;
    const { status, parts } = replacement ?? stopped;
    return { callId, name, status, parts };
  });
  const rewritten = results.filter((each) => each.rewritten);
  const inputs = new Map(rewritten.map(({ callId, rewritten }) => [callId, rewritten?.input]));
  const context = results.flatMap(({ context = [] }) => context);
  return [
    replaceInputs(message, inputs),
    { role: "tool", results: results.map(withoutAdditions) },
    ...contextMessages(context, "context"),
  ];
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
async function failuresThatEndRun(scope: StepScope, calls: readonly OpenCall[]): Promise<readonly unknown[]> {
  const { engine } = scope;
  const fatal: unknown[] = [];
  for (const call of calls) {
    for (const error of call.failures) {
      if (!call.isWaiting) {
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
