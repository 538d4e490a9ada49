/**
 * One call of a batch, from its decision to its reviewed result.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import { End, Paused } from "../hooks/interrupt.ts";
import type { ToolContext } from "../hooks/points/call.ts";
import type { CallDecision, Revision } from "./authorize.ts";
import { repairInput } from "./input_repair.ts";
import type { AnsweredQuestion, CallRecord } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import { decideWithoutHooks, toolPolicy } from "./tool_hooks.ts";

/** The identity of a call in its batch. */
export interface CallPlace {
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
