/**
 * One call of a batch, from its request to its result: it enters its `tool` hooks, is decided, is executed, leaves the hooks, and is closed.
 *
 * @module
 */
import {
  addRevision,
  authorize,
  type CallDecision,
  type Execution,
  maxRevisions,
  noRevisions,
  type Revision,
  type Revisions,
} from "./authorize.ts";
import {
  interrupted,
  notRun,
  reviewedResult,
  stopped,
  withheld,
  withoutAdditions,
  withoutError,
} from "./call_results.ts";
import { CallSteps } from "./call_steps.ts";
import { End, isInterrupt, Pause, Paused } from "./interrupt.ts";
import { nameOf } from "./middleware.ts";
import type { ToolChange, ToolContext } from "./points.ts";
import { type PointPolicy, policyOf } from "./policy.ts";
import type { CallRecord, ReviewedResult, SavedApproval } from "./position.ts";
import type { StepScope } from "./run.ts";
import type { AnyTool } from "./tool.ts";
import { repairInput, toolResultOf } from "./tool_io.ts";
import type { InnerCalls, ToolResult } from "../protocol/message.ts";
import type { Question } from "../protocol/question.ts";

// The phases of a call. A `CallRecord` is the form in which a phase is saved.

/** A decision that no further pass through the hooks replaces. */
type FinalDecision = Exclude<CallDecision, Revision>;

/** The phase of an open call, with the values that exist then. */
export type CallPhase =
  /** Not decided. `renamedTooOften`: its hooks have renamed it more often than it may pass them. */
  | { readonly at: "received"; readonly renamedTooOften?: boolean }
  /** A hook, a guard or a person changed its name or its input: it passes its hooks again. */
  | { readonly at: "revised"; readonly revision: Revision }
  | { readonly at: "decided"; readonly decision: FinalDecision }
  /** Saved as `running`, before the tool starts. */
  | { readonly at: "allowed"; readonly decision: Execution }
  /** The tool has started. It has not returned, or the run ended before. */
  | { readonly at: "running"; readonly decision: Execution }
  /** The tool has returned `raw`, which its hooks have not reviewed. */
  | { readonly at: "ran"; readonly decision: Execution; readonly raw: ToolResult }
  /** It has no result, since the run pauses. `from` is the phase before. */
  | { readonly at: "waiting"; readonly from: CallPhase }
  /** The same, saved with its questions. `saved` is the JSON of a tool that paused itself. */
  | {
    readonly at: "paused";
    readonly from: CallPhase;
    readonly questions: readonly Question[];
    readonly approval?: SavedApproval | undefined;
    readonly saved?: unknown;
  }
  /** Its hooks have returned the result. */
  | { readonly at: "reviewed"; readonly decision: FinalDecision | undefined; readonly result: ToolResult }
  /** It has left. No other phase follows. */
  | { readonly at: "closed"; readonly result: ReviewedResult };

/** Returns the decision of a phase, if it has one. */
function decisionOf(phase: CallPhase): FinalDecision | undefined {
  if ("from" in phase) return decisionOf(phase.from);
  return "decision" in phase ? phase.decision : undefined;
}

/** Returns the record of a call in a phase. Undefined if the phase saves nothing: the record of an earlier phase stays. */
function recordOf(
  { record: { call }, note, inner, savedSteps: steps }: OpenCall,
  phase: CallPhase,
): CallRecord | undefined {
  const base = { call, ...(inner && { inner }), ...(steps && { steps }) };
  switch (phase.at) {
    case "allowed":
    case "ran": {
      const { tool: { name }, json: input } = phase.decision;
      const allowed = { ...base, name, input, ...(note !== undefined && { note }) };
      if (phase.at === "allowed") return { ...allowed, state: "running" };
      return { ...allowed, state: "ran", raw: withoutError(phase.raw) };
    }
    case "paused": {
      const { approval, saved } = phase;
      // The exit of the run contains the schemas of the questions.
      const questions = phase.questions.map(({ schema: _, suggestions: __, ...question }) => question);
      const more = { ...(approval && { approval }), ...(saved !== undefined && { saved }) };
      return { ...base, state: "waiting", questions, ...more };
    }
    case "closed":
      return { call, state: "done", result: phase.result };
    default:
      return undefined;
  }
}

// The call: each of its methods leads from one phase to the next.

/** The reason why no further call of a batch may run. */
export interface Halt {
  readonly reason: string;
  readonly pause?: Pause;
}

/** Returns the reason why no further call may run, as far as this call shows. */
export function haltOf(
  { scope: { engine: { exit: { current: exit }, control } }, failures }: OpenCall,
): Halt | undefined {
  const pause = failures.find(isPause);
  if (pause) return { reason: "the run was paused", pause };
  if (exit && exit.status !== "aborted" && exit.status !== "deadline") {
    return { reason: exit.reason ?? "the run was ended" };
  }
  if (exit || control.aborted) return { reason: "the run was stopped" };
  return failures.every(isInterrupt) ? undefined : { reason: "a hook failed" };
}

/** The place of a call in its batch. */
interface CallPlace {
  readonly turn: number;
  readonly batchId: string;
  /** The call's place in the model's order, from 0. */
  readonly index: number;
  /** The result of a call that may not run, whatever hooks and people decide. */
  readonly barred?: ToolResult | undefined;
  /** The records of the batch. Each open call writes its own. */
  readonly records: CallRecord[];
  /** Saves the records. Never rejects: a failure ends the run. */
  readonly save: () => Promise<void> | undefined;
}

/**
 * An open call. The batch calls `enter()`, `allow()`, `execute()`, `leave()` and `close()` in this order. A call that waits is kept by `pause()` in place of
 * `close()`. Only this class assigns the phase and the record.
 */
export class OpenCall {
  #phase: CallPhase = { at: "received" };
  #revisions = noRevisions;
  #isStartEmitted = false;
  #steps: CallSteps | undefined;
  #innerCalls: { readonly calls: InnerCalls | undefined } | undefined;
  readonly #failures: unknown[] = [];
  /** Ends the wait of `enter()`. */
  #onDecided: (() => void) | undefined;
  /** Ends the wait of the hooks for the result. Undefined before the call is decided. */
  #resultForHooks: PromiseWithResolvers<ToolResult> | undefined;
  /** Settles when the `tool` hooks have returned: with their result, if they have one. Never rejects. */
  #hooksResult: Promise<ToolResult | undefined> | undefined;

  /** `record` is the record of the call when its batch was opened. */
  constructor(
    readonly scope: StepScope,
    readonly record: CallRecord,
    readonly place: CallPlace,
  ) {}

  get phase(): CallPhase {
    return this.#phase;
  }
  get revisions(): Revisions {
    return this.#revisions;
  }
  /** The errors that its hooks threw, and the failure that ends the run. */
  get failures(): readonly unknown[] {
    return this.#failures;
  }
  /** True if a person must be asked before the call runs. */
  get asks(): boolean {
    return decisionOf(this.#phase)?.type === "ask";
  }
  /** True if the call has no result now, and continues after a pause. */
  get isWaiting(): boolean {
    return this.#phase.at === "waiting" || this.#phase.at === "paused";
  }
  /** A text for the model beside the result: that a person changed the input. */
  get note(): string | undefined {
    const decision = decisionOf(this.#phase);
    const note = decision?.type === "execute" ? decision.note : undefined;
    return note ?? ("note" in this.record ? this.record.note : undefined);
  }
  /** The calls inside the subagent that does the work, as far as clients have seen them. */
  get inner(): InnerCalls | undefined {
    return this.#innerCalls?.calls ?? this.record.inner;
  }
  /** The journaled steps of the tool. */
  get steps(): CallSteps {
    return this.#steps ??= new CallSteps(this);
  }
  /** Those steps as its record has them. */
  get savedSteps(): CallRecord["steps"] {
    return this.#steps ? this.#steps.saved : this.record.steps;
  }
  /** Returns true if the tool may run again within this call, also after a crash. */
  mayRepeat({ idempotent }: AnyTool): boolean {
    return idempotent === true || this.savedSteps !== undefined;
  }
  /** The questions that a waiting call asks. */
  get questions(): readonly Question[] {
    const decision = decisionOf(this.#phase);
    return decision?.type === "ask" ? [decision.question] : this.#failures.find(isPause)?.questions ?? [];
  }

  /** Enters the `tool` hooks, again after each revision, until the call is decided. The hooks stay open. Never rejects. */
  enter(): Promise<void> {
    return new Promise((resolve) => {
      this.#onDecided = resolve;
      this.#hooksResult = this.#passHooks();
    });
  }

  /** Decides the call, at the core of its hooks, and waits for its result. `proposed` is the result of a hook that answered in place of the tool. */
  async decide(ctx: ToolContext, proposed?: ToolResult): Promise<ToolResult> {
    const decision = await authorize(ctx, this, proposed);
    if (decision.type === "revise") throw this.#revise(decision);
    if (this.#phase.at === "closed") throw new End("the run is over");
    if (this.#failures.length > 0) throw new Paused(this.record.call.id); // a hook has left that did not await it
    this.#move({ at: "decided", decision });
    this.#onDecided?.();
    this.#resultForHooks = Promise.withResolvers();
    return await this.#resultForHooks.promise;
  }

  /** Returns the context of the inner hooks for a renamed call. If hooks outside of `hook` saw the other name, it throws, and the call passes all hooks again. */
  rename(inner: ToolContext, hook: string): ToolContext {
    const { engine: { settings, definition: { use } } } = this.scope;
    const { name, input, edited } = inner;
    const tool = settings.toolsByName.get(name);
    const names = use.map((middleware, index) => middleware.tool ? nameOf(middleware, index) : undefined);
    const isOutermost = names.find((each) => each !== undefined) === hook &&
      names.lastIndexOf(hook) === names.indexOf(hook);
    const { state } = this.record;
    if (!tool || isOutermost || state === "running" || state === "ran") return { ...inner, tool };
    const renamedTooOften = this.#revisions.count >= maxRevisions;
    if (!renamedTooOften) throw this.#revise({ type: "revise", name, input, edited });
    this.#move({ at: "received", renamedTooOften });
    return { ...inner, tool };
  }

  /** Returns the result with which a hook answers. The call needs approval all the same, and no hook turns a denial into a success. */
  answer(ctx: ToolContext, returned: ToolResult): ToolResult | Promise<ToolResult> {
    if (this.#phase.at === "received") return this.decide(ctx, returned);
    const decision = decisionOf(this.#phase); // none if it was revised: the answer is dropped
    return decision?.type === "answer" && decision.result.status === "denied" && returned.status !== "denied"
      ? { ...returned, status: "denied" }
      : returned;
  }

  /** Allows the call if it was decided so: it is saved as running before it is executed. */
  allow(): void {
    const decision = decisionOf(this.#phase);
    if (decision?.type === "execute") this.#move({ at: "allowed", decision });
  }

  /** Executes an allowed call: `work` returns its result, or throws an interrupt. Never rejects. */
  async execute(work: (call: OpenCall, decision: Execution) => Promise<ToolResult>): Promise<void> {
    if (this.#phase.at !== "allowed") return;
    const { decision } = this.#phase;
    const phase = { at: "running", decision } as const;
    this.#move(phase);
    try {
      this.#move({ at: "ran", decision, raw: await work(this, decision) });
    } catch (error) {
      this.fail(error);
      if (!(error instanceof Pause)) return;
      const { questions, saved } = error;
      this.#move({ at: "paused", from: phase, questions, approval: decision.approval, saved });
    }
  }

  /** Leaves the hooks: they continue with the result, or are unwound if the call must wait. Waits until they have returned. Never rejects. */
  async leave(halt: Halt | undefined): Promise<void> {
    const { scope: { engine }, record: { call: { id } } } = this;
    const mustWait = halt ? halt.pause !== undefined : this.asks || this.isWaiting;
    this.#setWaiting(mustWait && !engine.isEnding);
    const unreviewed = this.#resultToReview(halt);
    if (unreviewed) this.#resultForHooks?.resolve(unreviewed);
    else this.#resultForHooks?.reject(new Paused(id));
    const result = await this.#hooksResult;
    if (this.#failures.some(isPause)) this.#setWaiting(!engine.isEnding);
    if (result && !this.isWaiting) this.#move({ at: "reviewed", decision: decisionOf(this.#phase), result });
  }

  /** Keeps a waiting call until the run continues: with its question, unless the run pauses for another reason. */
  pause(halt: Halt | undefined): void {
    const { place: { records, index } } = this;
    const phase = this.#phase;
    if (phase.at !== "waiting") return;
    const decision = decisionOf(phase);
    const isAsked = decision?.type === "ask" && !halt?.pause;
    const approval = isAsked || decision?.type === "execute" ? decision.approval : undefined; // a question that was not asked is decided again
    const isUnsaved = records[index]?.state === "pending"; // a hook paused the run, not the call
    if (isAsked || isUnsaved) {
      this.#move({ at: "paused", from: phase, questions: isAsked ? [decision.question] : [], approval });
    }
  }

  /** Closes the call, and emits its result. Throws `End` if the run is over. */
  close(halt: Halt | undefined): void {
    if (this.scope.engine.loop.detached) throw new End("the run is over");
    this.#close(this.#finalResult(halt))();
  }

  /** Closes the call of a run that ended without waiting for it, and unwinds its hooks. Returns a function that emits its result. */
  abandon(): () => void {
    this.#resultForHooks?.reject(new End("the run is over"));
    return this.#close(stopped);
  }

  /** Collects the calls inside the subagent that does the work: `collector` has those so far. */
  collect(collector: { readonly calls: InnerCalls | undefined }): void {
    this.#innerCalls = collector;
  }

  /** Saves its steps so far. */
  saveSteps(): Promise<void> | undefined {
    const { phase, place: { records, index, save } } = this;
    if (phase.at !== "running") return undefined;
    records[index] = recordOf(this, { ...phase, at: "allowed" }) ?? this.record;
    return save();
  }

  /** Adds an error that the run must handle. */
  fail(error: unknown): void {
    this.#failures.push(error);
  }

  // Parts of these steps.

  #move(phase: CallPhase): void {
    if (this.#phase.at === "closed") return;
    this.#phase = phase;
    const record = recordOf(this, phase);
    if (record) this.place.records[this.place.index] = record;
  }

  /** Passes the `tool` hooks, again after each revision. Returns their result, if they have one. Never rejects. */
  async #passHooks(): Promise<ToolResult | undefined> {
    const { engine } = this.scope;
    let result: ToolResult | undefined;
    do {
      try {
        this.#emitStarted();
        const input = this.#input();
        const ctx = this.#context(input instanceof Promise ? await input : input); // a synchronous schema costs no turn of the microtask queue
        result = await engine.definition.onions.tool(ctx, this, toolPolicy);
      } catch (error) {
        const isRevised = this.#phase.at === "revised" && error instanceof Paused; // hooks see `Paused`, as for a question
        if (error instanceof End) engine.exit.offerInterrupt(error);
        if (!isRevised) this.fail(error);
        result = undefined;
      }
    } while (this.#isReceivedAgain());
    this.#onDecided?.();
    return result;
  }

  /** Emits `tool.started`, once. */
  #emitStarted(): void {
    if (this.#isStartEmitted) return;
    this.#isStartEmitted = true;
    const { scope: { engine, emit }, record: { call: { id: call, name } }, place: { index, batchId: batch, turn } } =
      this;
    engine.events.emitThrough(emit, { type: "tool.started", turn, call, name, batch, index });
  }

  /** Returns the input for the hooks. The model's own is repaired before: guards see the input that runs. */
  #input(): unknown {
    const { record: { call }, scope: { engine } } = this;
    const { last } = this.#revisions;
    if (last) return last.input;
    const tool = engine.settings.toolsByName.get(call.name);
    const isRepaired = tool && tool.repair !== false && call.malformed === undefined;
    return isRepaired ? repairInput(tool.input, call.input) : call.input;
  }

  #context(input: unknown): ToolContext {
    const { scope: { engine, run, signal, emit, vars }, record: { call, state }, place } = this;
    const { last } = this.#revisions;
    const { name } = last ?? call;
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
      edited: last?.edited ?? false,
    };
  }

  /** Has the call pass its hooks again, with another name or input. Returns the error that unwinds them. */
  #revise(revision: Revision): Paused {
    if (this.#phase.at === "received") this.#move({ at: "revised", revision });
    return new Paused(this.record.call.id);
  }

  #isReceivedAgain(): boolean {
    if (this.#phase.at !== "revised" || this.#failures.length > 0) return false;
    this.#revisions = addRevision(this.#revisions, this.#phase.revision);
    this.#move({ at: "received" });
    return true;
  }

  /** Lets the call wait, or no longer, since the run ends. Its record stays. */
  #setWaiting(waits: boolean): void {
    if (waits === this.isWaiting) return;
    if (waits) this.#move({ at: "waiting", from: this.#phase });
    else if ("from" in this.#phase) this.#phase = this.#phase.from;
  }

  /** Returns the result for the hooks. Undefined if the call waits or has no decision. */
  #resultToReview(halt: Halt | undefined): ToolResult | undefined {
    const phase = this.#phase;
    switch (phase.at) {
      case "ran":
        return phase.raw;
      case "running":
        return stopped;
      case "allowed":
      case "decided":
        return phase.decision.type === "answer" ? phase.decision.result : notRun(this.#reason(halt));
      default:
        return undefined;
    }
  }

  /** Returns the result with which the call is closed. It is never one that a hook failed to review. */
  #finalResult(halt: Halt | undefined): ToolResult {
    const phase = this.#phase;
    if (phase.at === "reviewed") return phase.result;
    const { failures, record: { state }, scope: { engine } } = this;
    const isWaiting = "from" in phase;
    const last = isWaiting ? phase.from : phase;
    const hasThrown = !isWaiting && !engine.control.aborted && !failures.every(isInterrupt);
    const hasResult = last.at === "ran" ||
      (!isWaiting && (last.at === "running" || decisionOf(last)?.type === "answer"));
    const reason = this.#reason(halt);
    if (hasThrown || hasResult || state === "ran") return withheld(isWaiting ? "the run was ended" : reason);
    return state === "running" ? interrupted : notRun(reason);
  }

  /** Returns the reason why the call did not run, for the model. */
  #reason(halt = haltOf(this)): string {
    return halt?.reason ?? "the run was ended";
  }

  /** Closes the call with a result. Returns a function that emits it. */
  #close(finalResult: ToolResult): () => void {
    const { record: { call }, note, inner, scope: { engine } } = this;
    const reviewed = reviewedResult(call, finalResult, { note, limit: engine.limits.output });
    const result = inner ? { ...reviewed, inner } : reviewed;
    this.#move({ at: "closed", result });
    return () => this.#emitResult(finalResult, result);
  }

  #emitResult({ person, silent }: ToolResult, reviewed: ReviewedResult): void {
    const { scope: { engine, emit }, place: { turn } } = this;
    try {
      this.#emitStarted();
      const { inner: _, ...shown } = withoutAdditions(reviewed); // clients have seen the calls
      const result = { ...shown, ...(silent && { parts: [] }) };
      engine.events.emitThrough(emit, { type: "tool.finished", turn, call: result.callId, result });
      if (person !== undefined && !silent) emit({ type: "notice", text: person });
    } catch (error) {
      this.fail(error);
    }
  }
}

function isPause(error: unknown): error is Pause {
  return error instanceof Pause;
}

// The `tool` hooks: they are open from the decision of a call to its result.

/** The policy of `tool`. */
const toolPolicy: PointPolicy<ToolContext, ToolChange, ToolResult, OpenCall> = /* @__PURE__ */ policyOf("tool", {
  core: (ctx, call) => call.decide(ctx),
  hint: () => "retry at execute",
  late: true,
  derive: (inner, outer, call, hook) => inner.name === outer.name ? inner : call.rename(inner, hook),
  finalize: ({ name, returned, ctx, locals: call }) => call.answer(ctx, toolResultOf(name, "tool", returned)),
});
