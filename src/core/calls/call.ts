/**
 * One call of a batch while its `tool` onion is open: its way in, its decision, and its way out.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import { End, Paused } from "../hooks/interrupt.ts";
import { nameOf } from "../hooks/middleware.ts";
import type { PointPolicy, Review } from "../hooks/onion.ts";
import type { ToolChange, ToolContext } from "../hooks/points/call.ts";
import { policyOf } from "../hooks/policy.ts";
import { authorize, type Decision, maxRevisions } from "./authorize.ts";
import { interrupted } from "./outcome.ts";
import type { CallRecord } from "../run/position.ts";
import type { StepScope } from "../run/run.ts";
import { toolResultOf } from "./tool_io.ts";

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
  /** Settles when the call has been decided, or its hooks have failed. */
  readonly parked: PromiseWithResolvers<void> = Promise.withResolvers();
  /** Opens with the result when the call may leave. */
  readonly gate: PromiseWithResolvers<ToolResult> = Promise.withResolvers();
  /** The call's whole way in and out. Never rejects. */
  onion: Promise<void> = Promise.resolve();
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
    if (record.state === "running" || record.state === "ran") this.note = record.note;
  }

  /** Starts the `tool` onion. It parks at the layer that decides the call. A call that was revised passes it again. */
  async enter(): Promise<void> {
    const { exit, definition: { onions } } = this.scope.engine;
    try {
      this.announce();
      for (let ctx: ToolContext | undefined = this.#context(); ctx; ctx = this.#revised(ctx)) {
        try {
          this.result = await onions.tool(ctx, this, policy);
        } catch (error) {
          if (this.decision?.type !== "revise" || !(error instanceof Paused)) throw error; // hooks see `Paused`, as for a question
        }
      }
    } catch (error) {
      if (error instanceof End) exit.offerInterrupt(error);
      this.failures.push(error);
    }
    this.parked.resolve();
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

  /** Unwinds the onion that waits at the gate. */
  reject(error: Error): void {
    this.gate.promise.catch(() => {}); // the onion may have failed before it reached the gate
    this.gate.reject(error);
  }
}

const policy: PointPolicy<ToolContext, ToolChange, ToolResult, OpenCall> = /* @__PURE__ */ policyOf(
  "tool",
  ["input", "name"],
  {
    core: park,
    hint: ": retry at execute",
    late: true,
    derive: (inner, outer, call, hook) => inner.name === outer.name ? inner : renamed(inner, call, hook),
    finalize({ name, returned, ctx, own }) {
      toolResultOf(name, "tool", returned);
      const { decision } = own;
      if (!decision) return park(ctx, own, undefined, returned); // a hook answered: the call needs approval all the same
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
async function park(
  ctx: ToolContext,
  call: OpenCall,
  review?: Review<ToolResult>,
  proposed?: ToolResult,
): Promise<ToolResult> {
  call.decision = savedDecision(ctx, call, proposed) ?? await authorize(ctx, call, proposed);
  if (call.decision.type === "revise") throw new Paused(call.record.call.id);
  call.parked.resolve();
  const result = await call.gate.promise;
  return review ? review(result) : result;
}

/** Returns the decision about a call that was allowed before the process died, or a hook paused the run. It is not asked about again. */
function savedDecision(
  ctx: ToolContext,
  { record, scope: { engine } }: OpenCall,
  proposed: ToolResult | undefined,
): Decision | undefined {
  if (record.state === "ran") return { type: "answer", result: proposed ?? record.raw };
  if (record.state !== "running") return undefined;
  const { name, input } = record;
  const tool = engine.settings.toolsByName.get(name);
  if (!tool?.idempotent) return { type: "answer", result: { ...interrupted, input } };
  return { type: "execute", tool, input, json: input, scope: ctx };
}
