/**
 * One call of a batch, from its decision to its reviewed result.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import { End, Paused } from "../hooks/interrupt.ts";
import type { ToolContext } from "../hooks/points/call.ts";
import { authorize, type Decision } from "./authorize.ts";
import type { CallRecord } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import { type OpenHooks, toolPolicy } from "./tool_hooks.ts";

/** The identity of a call in its batch. */
export interface CallPlace {
  readonly turn: number;
  readonly batchId: string;
  /** The call's place in the model's order, from 0. */
  readonly index: number;
  /** True if the call exceeds the limit of calls. */
  readonly overLimit: boolean;
}

/** One open call, in memory. Its `CallRecord` is saved. */
export class OpenCall {
  /** Its `tool` hooks. Undefined if the agent has none. */
  readonly hooks: OpenHooks | undefined;
  /** Settles when the call is decided, and its hooks have returned. Never rejects. */
  passed: Promise<void> | undefined;
  decision: Decision | undefined;
  /** The result of the work, before the hooks reviewed it. */
  raw: ToolResult | undefined;
  /** The reviewed result. */
  result: ToolResult | undefined;
  /** The errors that its hooks threw, and the failure that ends the run. */
  readonly failures: unknown[] = [];
  /** True if the call continues after a pause. */
  waiting = false;
  /** True once `tool.started` was emitted. */
  announced = false;
  /** The number of times that the call has passed the `tool` hooks before. */
  revisions = 0;
  /** The edited inputs that have passed the `tool` hooks, as canonical JSON. */
  readonly edits: string[] = [];
  /** True if hooks renamed the call more often than it may pass them. */
  renamedTooOften = false;
  /** A text for the model beside the result: that a person changed the input. */
  note: string | undefined;

  constructor(
    readonly scope: StepScope,
    readonly record: CallRecord,
    readonly place: CallPlace,
  ) {
    if (scope.engine.definition.hasToolHooks) {
      this.hooks = { call: this, decided: Promise.withResolvers(), gate: Promise.withResolvers() };
    }
    if (record.state === "running" || record.state === "ran") this.note = record.note;
  }

  /** Decides the call, at the core of its `tool` onion if there are hooks. They stay open. Never rejects. */
  enter(): Promise<void> {
    this.passed = this.#pass();
    return this.hooks ? this.hooks.decided.promise : this.passed;
  }

  /** Gives the call its result, which the hooks review. */
  resolve(result: ToolResult): void {
    if (this.hooks) this.hooks.gate.resolve(result);
    else this.result = result;
  }

  /** Unwinds the hooks that wait for the result. */
  reject(reason: Error): void {
    this.hooks?.gate.promise.catch(() => {}); // they may have failed before they waited
    this.hooks?.gate.reject(reason);
  }

  /** Passes the `tool` hooks, once more each time that the call was revised. */
  async #pass(): Promise<void> {
    const { hooks, scope: { engine: { exit, definition: { onions } } } } = this;
    try {
      this.announce();
      for (let ctx: ToolContext | undefined = this.#context(); ctx; ctx = this.#revised(ctx)) {
        try {
          if (hooks) this.result = await onions.tool(ctx, hooks, toolPolicy);
          else this.decision = await authorize(ctx, this, undefined);
        } catch (error) {
          if (this.decision?.type !== "revise" || !(error instanceof Paused)) throw error; // hooks see `Paused`, as for a question
        }
      }
    } catch (error) {
      if (error instanceof End) exit.offerInterrupt(error);
      this.failures.push(error);
    }
    hooks?.decided.resolve();
  }

  /** Returns the context of the next pass. Undefined unless the call was revised. */
  #revised(ctx: ToolContext): ToolContext | undefined {
    if (this.decision?.type !== "revise") return undefined;
    const { name, input, edited } = this.decision;
    this.revisions++;
    this.decision = undefined;
    return { ...ctx, name, input, edited, tool: this.scope.engine.settings.toolsByName.get(name) };
  }

  #context(): ToolContext {
    const { scope: { engine, run, signal, emit, vars }, record: { call, state }, place } = this;
    return {
      run,
      signal,
      emit,
      vars,
      call,
      tool: engine.settings.toolsByName.get(call.name),
      name: call.name,
      input: call.input,
      batchId: place.batchId,
      index: place.index,
      turn: place.turn,
      resumed: state !== "pending",
      edited: false,
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
