/**
 * The hooks of middleware, composed without the engine: the core is another system.
 *
 * @module
 */
import type {
  Answer,
  Approval,
  ApprovalContext,
  Change,
  Hook,
  InputChange,
  InputContext,
  InputResult,
  Middleware,
  ModelChange,
  ModelContext,
  ModelResponse,
  PromptChange,
  PromptContext,
  RunResult,
  Scope,
  SessionChange,
  SessionContext,
  Stop,
  StopContext,
  ToolChange,
  ToolContext,
  ToolResult,
} from "../../../mod.ts";
import {
  approvalPolicyOf,
  compose,
  merged,
  nameOf,
  type PointPolicy,
  policyOf,
  toolResultOf,
} from "../../../src/core/engine.ts";

/** The innermost layer: the foreign system. */
export type Inner<C, R> = (ctx: C) => Promise<R>;

/** The hooks of one point, around an innermost layer. */
export type Around<C, R> = (ctx: C, inner: Inner<C, R>) => Promise<R>;

/** The points that other systems support. */
export interface Onions {
  readonly session: Around<SessionContext, RunResult>;
  readonly input: Around<InputContext, InputResult>;
  readonly prompt: Around<PromptContext, Answer>;
  readonly model: Around<ModelContext, ModelResponse>;
  readonly tool: Around<ToolContext, ToolResult>;
  readonly approval: Around<ApprovalContext, Approval>;
  readonly stop: Around<StopContext, Stop>;
}

/** A policy whose own value is the innermost layer. */
type Policy<C, D, R> = PointPolicy<C, D, R, Inner<C, R>>;

/** The core of every point: the innermost layer. */
function core<C, R>(ctx: C, inner: Inner<C, R>): Promise<R> {
  return inner(ctx);
}

const session: Policy<SessionContext, SessionChange, RunResult> = policyOf("session", ["settings", "context"], {
  core,
});
const input: Policy<InputContext, InputChange, InputResult> = policyOf("input", ["messages", "context"], { core });
const prompt: Policy<PromptContext, PromptChange, Answer> = policyOf("prompt", ["prompt", "context"], { core });
const model: Policy<ModelContext, ModelChange, ModelResponse> = policyOf("model", ["request"], {
  core,
  derive: (inner, outer) => ({ ...inner, request: merged(outer.request, inner.request) }),
});
const tool: Policy<ToolContext, ToolChange, ToolResult> = policyOf("tool", ["input", "name"], {
  core,
  finalize: ({ name, returned }) => toolResultOf(name, "tool", returned),
});
const approval: Policy<ApprovalContext, Change, Approval> = approvalPolicyOf(core);
const stop: Policy<StopContext, Change, Stop> = policyOf("stop", [], { core });

/** Composes middleware. Throws a `TypeError` if none of it has a hook at a point that other systems have. */
export function onionsOf(use: readonly Middleware[]): Onions {
  const points = ["session", "input", "prompt", "model", "tool", "approval", "stop"] as const;
  if (!use.some((middleware) => points.some((point) => middleware[point]))) {
    throw new TypeError(`Cannot export middleware: expected a hook at one of ${points.join(", ")}`);
  }

  function fold<C extends Scope, D extends Change, R>(
    pick: (middleware: Middleware) => Hook<C, D, R> | undefined,
    policy: Policy<C, D, R>,
  ): Around<C, R> {
    const onion = compose(use.flatMap((middleware, index) => {
      const hook = pick(middleware)?.bind(middleware);
      return hook ? [{ name: nameOf(middleware, index), hook }] : [];
    }));
    return (ctx, inner) => onion(ctx, inner, policy);
  }

  return {
    session: fold(({ session }) => session, session),
    input: fold(({ input }) => input, input),
    prompt: fold(({ prompt }) => prompt, prompt),
    model: fold(({ model }) => model, model),
    tool: fold(({ tool }) => tool, tool),
    approval: fold(({ approval }) => approval, approval),
    stop: fold(({ stop }) => stop, stop),
  };
}
