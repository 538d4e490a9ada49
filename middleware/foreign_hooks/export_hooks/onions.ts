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
import { approvalLaw, compose, type Law, lawOf, merged, nameOf, resultBy } from "../../../src/core/engine.ts";

/** The core of an onion: the other system. */
export type Core<C, R> = (ctx: C) => Promise<R>;

/** The hooks of one point around a core. */
export type Around<C, R> = (ctx: C, core: Core<C, R>) => Promise<R>;

/** The points that other systems support. */
export interface Onions {
  readonly session: Around<SessionContext, RunResult>;
  readonly prompt: Around<PromptContext, Answer>;
  readonly model: Around<ModelContext, ModelResponse>;
  readonly tool: Around<ToolContext, ToolResult>;
  readonly approval: Around<ApprovalContext, Approval>;
  readonly stop: Around<StopContext, Stop>;
}

const laws = {
  session: lawOf<SessionContext, SessionChange, RunResult, never>("session", ["settings", "context"]),
  prompt: lawOf<PromptContext, PromptChange, Answer, never>("prompt", ["prompt", "context"]),
  model: lawOf<ModelContext, ModelChange, ModelResponse, never>("model", ["request"], {
    derive: (beneath, above) => ({ ...beneath, request: merged(above.request, beneath.request) }),
  }),
  tool: lawOf<ToolContext, ToolChange, ToolResult, never>("tool", ["input", "name"], {
    seal: ({ name, returned }) => resultBy(name, "tool", returned),
  }),
  approval: approvalLaw,
  stop: lawOf<StopContext, Change, Stop, never>("stop", []),
};

/** The data that the engine passes along. None of these laws uses it. */
const nothing = undefined as never;

/** Composes middleware. Throws a `TypeError` if it has no hook at a supported point. */
export function onionsOf(use: readonly Middleware[]): Onions {
  const points = ["session", "prompt", "model", "tool", "approval", "stop"] as const;
  if (!use.some((middleware) => points.some((point) => middleware[point]))) {
    throw new TypeError(`Cannot export middleware: expected a hook at one of ${points.join(", ")}`);
  }

  function fold<C extends Scope, D extends Change, R, E>(
    pick: (middleware: Middleware) => Hook<C, D, R> | undefined,
    law: Law<C, D, R, E>,
  ): Around<C, R> {
    const hooks = use.flatMap((middleware, index) => {
      const hook = pick(middleware)?.bind(middleware);
      return hook ? [{ name: nameOf(middleware, index), hook }] : [];
    });
    return (ctx, core) => compose(hooks, core, law)(ctx, nothing);
  }

  return {
    session: fold(({ session }) => session, laws.session),
    prompt: fold(({ prompt }) => prompt, laws.prompt),
    model: fold(({ model }) => model, laws.model),
    tool: fold(({ tool }) => tool, laws.tool),
    approval: fold(({ approval }) => approval, laws.approval),
    stop: fold(({ stop }) => stop, laws.stop),
  };
}
