/**
 * When an agent is about to finish: `Stop`, or `SubagentStop` beneath another; and `StopFailure` where the model fails it.
 *
 * @module
 */
import {
  continueWith,
  type ErrorContext,
  type Middleware,
  ModelError,
  type StopContext,
  textOf,
} from "../../../mod.ts";
import { type Answers, blockOf, contextOf } from "./answers.ts";
import { pathOf } from "./base.ts";
import type { Hooks } from "./hooks.ts";
import type { StopFailureKind } from "./input.ts";

/** The hooks of a middleware at `stop`. */
export function stop(hooks: Hooks): Pick<Middleware, "stop"> {
  const { dialect, memory } = hooks;

  async function askAll(ctx: StopContext): Promise<Answers> {
    const { run } = ctx;
    const told = () => ({
      stop_hook_active: memory.kept.get(ctx),
      last_assistant_message: textOf(ctx.message),
      background_tasks: [],
      session_crons: [],
    });
    if (!run.parent) return await hooks.ask("Stop", ctx, { point: "stop", told });
    const agent = { agent_id: run.id, agent_type: run.agent, agent_transcript_path: pathOf(run) };
    return await hooks.ask("SubagentStop", ctx, {
      point: "stop",
      of: run.agent,
      told: () => ({ ...told(), ...agent }),
    });
  }

  return {
    async stop(ctx, next) {
      const answers = await askAll(ctx);
      const end = hooks.endOf(ctx.run.parent ? "SubagentStop" : "Stop", ctx, answers);
      if (end) throw end;
      const blocked = blockOf(answers);
      const said = [...blocked === undefined ? [] : [blocked], ...contextOf(answers)];
      if (said.length === 0) return await next();
      if (ctx.continuations >= dialect.mostBlocks) {
        const message = `Hooks have kept the agent from stopping ${ctx.continuations} times: it stops.`;
        ctx.emit({ type: "warning", code: "hook.skipped", message, middleware: hooks.name, point: "stop" });
        return await next();
      }
      memory.kept.set(ctx, true);
      return continueWith(said.join("\n"));
    },
  };
}

/** The hooks of a middleware at `error`. */
export function error(hooks: Hooks): Pick<Middleware, "error"> {
  return {
    async error(ctx, next) {
      const decision = await next();
      if (ctx.source !== "model" || decision.type !== "abort") return decision;
      const error = kindOf(ctx);
      await hooks.ask("StopFailure", ctx, {
        point: "error",
        of: error,
        told: () => ({ error, error_details: ctx.error instanceof Error ? ctx.error.message : String(ctx.error) }),
      });
      return decision;
    },
  };
}

/** What the model failed of, by its HTTP status. */
function kindOf({ error }: ErrorContext): StopFailureKind {
  const { status = 0, overflow = false } = error instanceof ModelError ? error : {};
  if (status === 401 || status === 403) return "authentication_failed";
  if (status === 402) return "billing_error";
  if (status === 429) return "rate_limit";
  if (status >= 500) return "server_error";
  return status >= 400 || overflow ? "invalid_request" : "unknown";
}
