/**
 * The execution of one allowed call: its `execute` onion, a slot, and the grace period of a tool that ignores its signal.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import { ToolError } from "../agent/tool.ts";
import { isInterrupt } from "../hooks/interrupt.ts";
import type { ExecuteContext } from "../hooks/points/call.ts";
import { type PointPolicy, policyOf } from "../hooks/policy.ts";
import { failed, result } from "../hooks/results.ts";
import type { Change, Scope } from "../hooks/scope.ts";
import { delay, withGracePeriod } from "../lib/cancellation.ts";
import type { CallDecision } from "./authorize.ts";
import type { OpenCall } from "./call.ts";
import { decideOnError } from "../run/failure.ts";
import { readable, stopped } from "./outcome.ts";
import { toolResultOf, toResult } from "./tool_io.ts";

const policy: PointPolicy<ExecuteContext, Change, ToolResult, OpenCall> = /* @__PURE__ */ policyOf("execute", [], {
  core: runTool,
  retry: (ctx) => ctx,
  derive: (inner, outer, call) => inner.emit === outer.emit ? inner : { ...inner, progress: progressOf(inner, call) },
  finalize: ({ name, returned }) => toolResultOf(name, "execute", returned),
});

/** Returns a function that emits `tool.progress` until the call has a result. */
function progressOf({ emit }: Pick<Scope, "emit">, call: OpenCall): (data: unknown) => void {
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
  const { control, arrivals, limits, events } = engine;
  const { tool } = ctx;
  const cancellation = control.of(ctx.signal);
  if (cancellation.aborted) throw cancellation.reason;
  const isSubagent = tool["~execute"] !== undefined && !tool.definition.provider;
  const slots = isSubagent ? engine.agentSlots : engine.slots; // the tools of a subagent need a slot while it runs
  const slot = slots.take(cancellation);
  if (slot) await slot;
  try {
    if (tool["~execute"]) return await tool["~execute"](ctx as never, call as never); // it is made for these two
    if (arrivals.skipped) return arrivals.skipped;
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
