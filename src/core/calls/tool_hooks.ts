/**
 * The `tool` hooks of one call: they are open from its decision to its reviewed result.
 *
 * @module
 */
import type { ToolResult } from "../../protocol/message.ts";
import { Paused } from "../hooks/interrupt.ts";
import { nameOf } from "../hooks/middleware.ts";
import type { ToolChange, ToolContext } from "../hooks/points/call.ts";
import { type PointPolicy, policyOf } from "../hooks/policy.ts";
import { authorize, type CallDecision, maxRevisions, type Undecided } from "./authorize.ts";
import { toolResultOf } from "./tool_io.ts";

/** The part of an open call that its hooks use. */
interface HookedCall extends Undecided {
  decision: CallDecision | undefined;
  /** True if hooks renamed the call more often than it may pass them. */
  renamedTooOften: boolean;
  /** True if hooks are open around the core. */
  hasOpenHooks: boolean;
  /** Waits until the decided call may leave, for the hooks that are open. Returns its result. */
  untilResolved(): Promise<ToolResult>;
}

/** The policy of `tool`. */
export const toolPolicy: PointPolicy<ToolContext, ToolChange, ToolResult, HookedCall> = /* @__PURE__ */ policyOf(
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
function renamed(inner: ToolContext, call: HookedCall, hook: string): ToolContext {
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
async function decide(ctx: ToolContext, call: HookedCall, proposed?: ToolResult): Promise<ToolResult> {
  call.decision = await authorize(ctx, call, proposed);
  if (call.decision.type === "revise") throw new Paused(call.record.call.id);
  return await call.untilResolved();
}

/** The core of `tool` if no hook is open around it: decides the call. Its result comes later. */
export function decideWithoutHooks(ctx: ToolContext, call: HookedCall): Promise<CallDecision> {
  call.hasOpenHooks = false;
  return authorize(ctx, call, undefined);
}
