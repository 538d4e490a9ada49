/**
 * One call of a batch while its `tool` onion is open: its way in, its decision, and its way out.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import { End } from "../hooks/interrupt.ts";
import type { PointPolicy, Review } from "../hooks/onion.ts";
import type { ToolChange, ToolContext } from "../hooks/points/call.ts";
import { policyOf } from "../hooks/policy.ts";
import { authorize, type Decision } from "./authorize.ts";
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

/** One open call. It lives in memory; its `CallRecord` is what is saved. */
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
  /** A text for the model beside the result: that a person changed the input. */
  note: string | undefined;

  constructor(
    readonly scope: StepScope,
    readonly record: CallRecord,
    readonly place: CallPlace,
  ) {
    if (record.state === "running" || record.state === "ran") this.note = record.note;
  }

  /** Starts the `tool` onion. It parks at the layer that decides the call. */
  async enter(): Promise<void> {
    const { scope: { engine, run, signal, emit, vars }, record: { call, state }, place } = this;
    try {
      this.announce();
      const ctx: ToolContext = {
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
      };
      this.result = await engine.definition.onions.tool(ctx, this, policy);
    } catch (error) {
      if (error instanceof End) engine.loop.offerInterrupt(error);
      this.failures.push(error);
    }
    this.parked.resolve();
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
    derive: (inner, outer, { scope: { engine } }) =>
      inner.name === outer.name ? inner : { ...inner, tool: engine.settings.toolsByName.get(inner.name) },
    finalize({ name, returned, ctx, own }) {
      toolResultOf(name, "tool", returned);
      const { decision } = own;
      if (!decision) return park(ctx, own, undefined, returned); // a hook answered: the call needs approval all the same
      return decision.type === "answer" && decision.result.status === "denied" && returned.status !== "denied"
        ? { ...returned, status: "denied" }
        : returned;
    },
  },
);

/** The core of `tool`, also for a hook that answers in its place: decides the call, and waits until it may leave. */
async function park(
  ctx: ToolContext,
  call: OpenCall,
  review?: Review<ToolResult>,
  proposed?: ToolResult,
): Promise<ToolResult> {
  call.decision = savedDecision(ctx, call, proposed) ?? await authorize(ctx, call, proposed);
  call.parked.resolve();
  const result = await call.gate.promise;
  return review ? review(result) : result;
}

/** Returns the decision about a call that was allowed before the process died, or a hook paused the run. It is not asked about again. */
function savedDecision(
  { run, signal, emit, vars }: ToolContext,
  { record, scope: { engine } }: OpenCall,
  proposed: ToolResult | undefined,
): Decision | undefined {
  if (record.state === "ran") return { type: "answer", result: proposed ?? record.raw };
  if (record.state !== "running") return undefined;
  const { name, input } = record;
  const tool = engine.settings.toolsByName.get(name);
  if (!tool?.idempotent) return { type: "answer", result: { ...interrupted, input } };
  return { type: "execute", tool, input, json: input, scope: { run, signal, emit, vars } };
}
