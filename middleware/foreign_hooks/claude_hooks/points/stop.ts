/**
 * The `stop` and `error` points: Stop, SubagentStop and StopFailure.
 *
 * @module
 */
import {
  continueWith,
  type ErrorContext,
  type Middleware,
  ModelError,
  type Scope,
  type StopContext,
  textOf,
} from "../../../../mod.ts";
import { transcriptFile } from "../../kit/run.ts";
import { messageOf, warnSkipped } from "../../kit/warn.ts";
import { type Answers, blockOf, contextOf } from "../ask/answers.ts";
import type { AskOptions, Hooks } from "../ask/hooks.ts";
import type { StopFailureKind } from "../config/input.ts";

/** Creates the hook at `stop`. */
export function stopHook(hooks: Hooks): Pick<Middleware, "stop"> {
  const { dialect, memory } = hooks;

  async function askAll(ctx: StopContext): Promise<Answers> {
    const { run } = ctx;
    const fields = {
      stop_hook_active: memory.continued.get(ctx),
      last_assistant_message: textOf(ctx.message),
      background_tasks: [],
      session_crons: [],
    };
    if (!run.parent) return await hooks.ask("Stop", ctx, () => fields);
    const agent = { agent_id: run.id, agent_type: run.agent, agent_transcript_path: transcriptFile(run) ?? "" };
    return await hooks.ask("SubagentStop", ctx, () => ({ ...fields, ...agent }));
  }

  return {
    async stop(ctx, next) {
      const answers = await askAll(ctx);
      const end = hooks.endOf(ctx.run.parent ? "SubagentStop" : "Stop", ctx, answers);
      if (end) throw end;
      const blocked = blockOf(answers);
      const texts = [...blocked === undefined ? [] : [blocked], ...contextOf(answers)];
      if (texts.length === 0) return await next();
      if (ctx.continuations >= dialect.mostBlocks) {
        const message = `Hooks have kept the agent from stopping ${ctx.continuations} times in a row: it stops.`;
        warnSkipped(ctx, hooks.name, message, "stop");
        return await next();
      }
      memory.continued.set(ctx, true);
      return continueWith(texts.join("\n"));
    },
  };
}

/** Creates the hook at `error`. */
export function errorHook(hooks: Hooks): Pick<Middleware, "error"> {
  return {
    async error(ctx, next) {
      const decision = await next();
      if (ctx.source !== "model" || decision.type !== "abort") return decision;
      await askStopFailure(hooks, ctx, kindOf(ctx), messageOf(ctx.error));
      return decision;
    },
  };
}

/** Asks StopFailure, once in a run. */
export async function askStopFailure(
  hooks: Hooks,
  ctx: Scope,
  error: StopFailureKind,
  error_details: string,
  options: AskOptions = {},
): Promise<void> {
  hooks.memory.failed.set(ctx, true);
  await hooks.ask("StopFailure", ctx, () => ({ error, error_details }), options);
}

/** Classifies the failure of a model request by its HTTP status. */
function kindOf({ error }: ErrorContext): StopFailureKind {
  const { status = 0, overflow = false } = error instanceof ModelError ? error : {};
  if (status === 401 || status === 403) return "authentication_failed";
  if (status === 402) return "billing_error";
  if (status === 429) return "rate_limit";
  if (status >= 500) return "server_error";
  return status >= 400 || overflow ? "invalid_request" : "unknown";
}
