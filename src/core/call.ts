/**
 * One call of a batch, from its decision to its reviewed result: its input is repaired, its `tool` hooks open, it is executed.
 *
 * @module
 */
import { authorize, type CallDecision, maxRevisions, type Revision } from "./authorize.ts";
import { decideOnError } from "./failure.ts";
import { End, isInterrupt, Paused } from "./interrupt.ts";
import { delay, withGracePeriod } from "./lib/cancellation.ts";
import { nameOf } from "./middleware.ts";
import { readable, stopped } from "./outcome.ts";
import type { ExecuteContext, ToolChange, ToolContext } from "./points.ts";
import { type PointPolicy, policyOf } from "./policy.ts";
import type { AnsweredQuestion, CallRecord } from "./position.ts";
import { failed, result } from "./results.ts";
import type { StepScope } from "./run.ts";
import type { Change, Scope } from "./scope.ts";
import { type Issue, type Schema, ToolError, type Validation } from "./tool.ts";
import { toolResultOf, toResult } from "./tool_io.ts";
import type { ToolResult } from "../protocol/message.ts";

// Repairs of inputs: a nested value that the model wrote as a JSON string, and null for an optional field.

/** The number of repairs in a row: a value in a JSON string may need one of its own. */
const maxRounds = 5;

/**
 * Returns the input with the repairs without which the schema rejects it, if it accepts the repaired input; else the same input. Only the values that the schema
 * names in its issues change. Returns a promise only for an asynchronous schema. Never throws and never rejects: the parser of the input reports a failure of the schema.
 */
function repairInput(schema: Schema, input: unknown): unknown {
  if (!mayBeRepaired(input, 0)) return input;
  const attempt = (candidate: unknown, rounds: number): unknown => {
    const read = ({ issues }: Validation<unknown>): unknown => {
      if (!issues) return candidate;
      const repaired = rounds > 0 ? issues.reduce(repairAt, candidate) : candidate;
      return repaired === candidate ? input : attempt(repaired, rounds - 1);
    };
    const validated = schema["~standard"].validate(candidate);
    return "then" in validated ? Promise.resolve(validated).then(read).catch(() => input) : read(validated);
  };
  try {
    return attempt(input, maxRounds);
  } catch {
    return input;
  }
}

/** True if a value contains null, or a text that may be JSON. Most inputs do not, and are validated only once. */
function mayBeRepaired(value: unknown, depth: number): boolean {
  if (value === null) return depth > 0;
  if (typeof value === "string") return /^\s*[[{]/.test(value);
  return typeof value === "object" && depth < 100 &&
    Object.values(value).some((each) => mayBeRepaired(each, depth + 1));
}

/** Stands for a field that is left out. */
const omitted = Symbol("omitted");

function repairAt(input: unknown, { path = [] }: Issue): unknown {
  const repaired = replaceAt(input, path.map((key) => typeof key === "object" ? key.key : key));
  return repaired === omitted ? input : repaired;
}

/** Returns a copy in which the value at a path is repaired, or the same value if there is nothing to repair. */
function replaceAt(value: unknown, [key, ...rest]: readonly PropertyKey[]): unknown {
  if (key === undefined) return repaired(value);
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return value;
  const entries = new Map<PropertyKey, unknown>(Object.entries(value));
  const inner = entries.get(String(key));
  const replaced = replaceAt(inner, rest);
  if (replaced === inner || (replaced === omitted && Array.isArray(value))) return value;
  if (replaced === omitted) entries.delete(String(key));
  else entries.set(String(key), replaced);
  return Array.isArray(value) ? [...entries.values()] : Object.fromEntries(entries);
}

function repaired(value: unknown): unknown {
  if (value === null) return omitted;
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

// The `tool` hooks of one call: they are open from its decision to its reviewed result.

/** The policy of `tool`. */
const toolPolicy: PointPolicy<ToolContext, ToolChange, ToolResult, OpenCall> = /* @__PURE__ */ policyOf(
  "tool",
  ["input", "name"],
  {
    core: decide,
    hint: ": retry at execute",
    late: true,
    derive: (inner, outer, call, hook) => inner.name === outer.name ? inner : renamed(inner, call, hook),
    finalize({ name, returned, ctx, own: call }) {
      toolResultOf(name, "tool", returned);
      const { decision } = call;
      if (!decision) return decide(ctx, call, returned); // a hook answered: the call needs approval all the same
      if (decision.type === "revise") return returned; // dropped: the call passes the hooks again
      return decision.type === "answer" && decision.result.status === "denied" && returned.status !== "denied"
        ? { ...returned, status: "denied" }
        : returned;
    },
  },
);

/** Returns the context of a renamed call. If hooks outside of `hook` saw it under the other name, it throws, and the call passes all hooks again. */
function renamed(inner: ToolContext, call: OpenCall, hook: string): ToolContext {
  const { engine: { settings, definition: { use } } } = call.scope;
  const { name, input, edited } = inner;
  const tool = settings.toolsByName.get(name);
  const names = use.map((middleware, index) => middleware.tool ? nameOf(middleware, index) : undefined);
  const isOutermost = names.find((each) => each !== undefined) === hook &&
    names.lastIndexOf(hook) === names.indexOf(hook);
  if (!tool || isOutermost || call.record.state === "running" || call.record.state === "ran") return { ...inner, tool };
  call.renamedTooOften = call.revisions >= maxRevisions;
  if (call.renamedTooOften) return { ...inner, tool };
  call.decision = { type: "revise", name, input, edited };
  throw new Paused(call.record.call.id);
}

/** The core of `tool`, also for a hook that answers in its place: decides the call, and waits until it may leave. */
async function decide(ctx: ToolContext, call: OpenCall, proposed?: ToolResult): Promise<ToolResult> {
  call.decision = await authorize(ctx, call, proposed);
  if (call.decision.type === "revise") throw new Paused(call.record.call.id);
  return await call.untilResolved();
}

/** The core of `tool` if no hook is open around it: decides the call. Its result comes later. */
function decideWithoutHooks(ctx: ToolContext, call: OpenCall): Promise<CallDecision> {
  call.hasOpenHooks = false;
  return authorize(ctx, call, undefined);
}

// The call itself: it opens with its `tool` hooks, waits for its execution, and closes with its result.

/** The identity of a call in its batch. */
interface CallPlace {
  readonly turn: number;
  readonly batchId: string;
  /** The call's place in the model's order, from 0. */
  readonly index: number;
  /** The result of a call that may not run, whatever hooks and people decide. */
  readonly barred?: ToolResult | undefined;
}

/**
 * One open call, in memory. Its `CallRecord` is saved. `enter()` decides it; if `revise()` returns true then, it enters again. `resolve()` or `reject()` ends its
 * hooks, and `passed` settles.
 */
export class OpenCall {
  /** Settles when the call is decided, and its `tool` hooks have returned. Never rejects. Undefined once it has settled. */
  passed: Promise<void> | undefined;
  decision: CallDecision | undefined;
  /** The result of the work, before the hooks reviewed it. */
  raw: ToolResult | undefined;
  /** The reviewed result. */
  result: ToolResult | undefined;
  /** The errors that its hooks threw, and the failure that ends the run. */
  readonly failures: unknown[] = [];
  /** True if the call has no result now, and continues after a pause. */
  waiting = false;
  /** True once `tool.started` was emitted. */
  announced = false;
  /** The number of times that the call has passed the `tool` hooks before. */
  revisions = 0;
  /** The edited inputs that have passed the `tool` hooks, as canonical JSON. */
  readonly edits: string[] = [];
  /** The answers with an edit of a person that has passed the hooks. */
  readonly personsEdits: AnsweredQuestion[] = [];
  /** True if hooks renamed the call more often than it may pass them. */
  renamedTooOften = false;
  /** A text for the model beside the result: that a person changed the input. */
  note: string | undefined;
  /** True if `tool` hooks are open around the core. */
  hasOpenHooks = true;
  /** The name and the input of the call, once it was revised. */
  #revision: Revision | undefined;
  /** Ends the wait of `enter()`. */
  #decided: (() => void) | undefined;
  /** Settles with the result when the call may leave. Undefined unless open hooks wait for it. */
  #gate: PromiseWithResolvers<ToolResult> | undefined;
  /** The reason why open hooks are unwound. */
  #unwound: Error | undefined;

  constructor(
    readonly scope: StepScope,
    readonly record: CallRecord,
    readonly place: CallPlace,
  ) {
    if (record.state === "running" || record.state === "ran") this.note = record.note;
  }

  /** Decides the call, at the core of its `tool` onion. Hooks that are open stay open. Never rejects. */
  enter(): Promise<void> {
    const passed = this.#pass();
    this.passed = passed;
    if (!this.hasOpenHooks) return passed; // known by now, unless a condition is asynchronous: then `passed` ends the wait below
    return new Promise((resolve) => {
      this.#decided = resolve;
      void passed.then(resolve);
    });
  }

  /** Prepares another pass if a guard or a person edited the call, or a hook renamed it. Otherwise it returns false. */
  revise(): boolean {
    if (this.decision?.type !== "revise" || this.failures.length > 0) return false;
    this.#revision = this.decision;
    this.revisions = this.decision.byPerson ? 0 : this.revisions + 1;
    this.decision = undefined;
    this.result = undefined;
    this.hasOpenHooks = true;
    return true;
  }

  /** Waits until the decided call may leave, for the hooks that are open. Returns its result. */
  untilResolved(): Promise<ToolResult> {
    this.#decided?.();
    if (this.#unwound) return Promise.reject(this.#unwound);
    this.#gate = Promise.withResolvers();
    return this.#gate.promise;
  }

  /** Gives the decided call its result, which the hooks review. */
  resolve(result: ToolResult): void {
    if (this.hasOpenHooks) this.#gate?.resolve(result);
    else this.result = result; // costs no turn of the microtask queue
  }

  /** Unwinds the hooks that wait for the result, now or later. */
  reject(reason: Error): void {
    this.#unwound = reason;
    this.#gate?.reject(reason);
  }

  /** Passes the `tool` hooks. */
  async #pass(): Promise<void> {
    try {
      this.announce();
      const input = this.#input();
      const ended = await this.scope.engine.definition.onions.tool(
        this.#context(input instanceof Promise ? await input : input), // a synchronous schema costs no turn of the microtask queue
        this,
        toolPolicy,
        decideWithoutHooks,
      );
      if (ended.type === "result") this.result = ended;
      else this.decision = ended;
    } catch (error) {
      if (this.decision?.type !== "revise" || !(error instanceof Paused)) this.#fail(error); // hooks see `Paused`, as for a question
    }
    this.passed = undefined;
  }

  #fail(error: unknown): void {
    if (error instanceof End) this.scope.engine.exit.offerInterrupt(error);
    this.failures.push(error);
  }

  /** Returns the input for the hooks. The model's own is repaired before: guards see what runs. */
  #input(): unknown {
    const { record: { call }, scope: { engine } } = this;
    if (this.#revision) return this.#revision.input;
    const tool = engine.settings.toolsByName.get(call.name);
    const isRepaired = tool && tool.repair !== false && call.malformed === undefined;
    return isRepaired ? repairInput(tool.input, call.input) : call.input;
  }

  #context(input: unknown): ToolContext {
    const { scope: { engine, run, signal, emit, vars }, record: { call, state }, place } = this;
    const { name } = this.#revision ?? call;
    return {
      run,
      signal,
      emit,
      vars,
      call,
      tool: engine.settings.toolsByName.get(name),
      name,
      input,
      batchId: place.batchId,
      index: place.index,
      turn: place.turn,
      resumed: state !== "pending",
      edited: this.#revision?.edited ?? false,
    };
  }

  /** Emits `tool.started`, once. */
  announce(): void {
    if (this.announced) return;
    this.announced = true;
    const { scope: { engine, emit }, record: { call: { id: call, name } }, place: { index, batchId: batch, turn } } =
      this;
    engine.events.announce(emit, { type: "tool.started", turn, call, name, batch, index });
  }
}

// The execution of one allowed call: its `execute` onion, a slot, and the grace period of a tool that ignores its signal.

const policy: PointPolicy<ExecuteContext, Change, ToolResult, OpenCall> = /* @__PURE__ */ policyOf("execute", [], {
  core: runTool,
  retry: (ctx) => ctx,
  derive: (inner, outer, call) => inner.emit === outer.emit ? inner : { ...inner, progress: progressOf(inner, call) },
  finalize: ({ name, returned }) => toolResultOf(name, "execute", returned),
});

/** Returns a function that emits `tool.progress` until the call has a result. */
function progressOf({ emit }: Scope, call: OpenCall): (data: unknown) => void {
  return (data) => {
    if (!call.raw) emit({ type: "tool.progress", turn: call.place.turn, call: call.record.call.id, data });
  };
}

/** Executes an allowed call. A failure is the result of this call only. */
export async function executeCall(
  call: OpenCall,
  { tool, input, json, scope }: Extract<CallDecision, { type: "execute" }>,
): Promise<ToolResult> {
  const { scope: step, record, place: { turn, index, batchId } } = call;
  const { engine } = step;
  const { run, signal, emit, vars } = scope;
  const ctx: ExecuteContext = {
    run,
    signal,
    emit,
    vars,
    call: record.call,
    tool,
    input,
    callId: record.call.id,
    batchId,
    callIndex: index,
    turn,
    idempotencyKey: `${engine.id}:${turn}:${index}`,
    progress: progressOf(scope, call),
  };
  for (let attempt = 1, after = 0;; attempt++) {
    try {
      if (attempt > 1) await delay(after, signal); // also without a wait: timers must run, such as that of the time limit
      const returned = await engine.definition.onions.execute(ctx, call, policy);
      return returned.input === undefined ? { ...returned, input: json } : returned;
    } catch (thrown) {
      const error = readable(thrown);
      if (isInterrupt(error)) throw error;
      if (engine.control.aborted) return { ...stopped, input: json };
      const failure = {
        error,
        source: "execute",
        recoverable: true,
        attempt,
        name: tool.name,
        call: record.call,
      } as const;
      const decision = await decideOnError({ ...scope, engine }, failure);
      if (decision.type === "abort") call.failures.push(error);
      if (decision.type !== "retry" || signal.aborted) {
        return { ...resultOfError(tool.name, error), input: json, error };
      }
      after = decision.after;
    }
  }
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
    const returned = tool.execute(ctx.input as never, ctx); // parsed by the tool's own schema
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

/** Returns true for a value that `await` would wait for, such as a promise or a query builder. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Returns the result that the model reads of an error: the message of a `ToolError`, and nothing internal. */
function resultOfError(name: string, error: unknown): ToolResult {
  if (error instanceof ToolError) return failed(error.message);
  return error instanceof DOMException && error.name === "TimeoutError"
    ? result("timeout", `${name} did not finish in time.`)
    : failed(`${name} failed.`);
}
