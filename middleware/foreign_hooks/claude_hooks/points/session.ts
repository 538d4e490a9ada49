/**
 * The `session` point: SessionStart, SessionEnd, SubagentStart, and the failure of a run.
 *
 * @module
 */
import type { Middleware, RunResult, Scope, SessionContext } from "../../../../mod.ts";
import { messageOf } from "../../kit/warn.ts";
import { type Answers, contextOf, lastOf } from "../ask/answers.ts";
import { type AskOptions, endReason, type Hooks } from "../ask/hooks.ts";
import type { EventFields } from "../config/input.ts";
import { askStopFailure } from "./stop.ts";
import { watchEvents, watchPaths } from "./watch.ts";

/** Asks SessionStart, and applies its answers except their context. */
export async function startSession(
  hooks: Hooks,
  ctx: Scope,
  source: EventFields["SessionStart"]["source"],
): Promise<Answers> {
  const answers = await hooks.ask("SessionStart", ctx, () => ({ source }));
  const first = lastOf(answers, hooks.dialect, ({ specific }) => specific.initialUserMessage);
  if (first) hooks.memory.firstMessage.set(ctx, first);
  watchPaths(hooks, ctx, answers);
  return answers;
}

/** Creates the hook at `session`. */
export function sessionHook(hooks: Hooks): Pick<Middleware, "session"> {
  const { memory, background } = hooks;
  const watch = watchEvents(hooks);

  async function open(ctx: SessionContext): Promise<readonly string[]> {
    const { source, resumed, run, settings } = ctx;
    memory.model.set(ctx, settings.model.id);
    if (resumed) return [];
    if (!run.parent) return contextOf(await startSession(hooks, ctx, source === "new" ? "startup" : "resume"));
    const agent = { agent_id: run.id, agent_type: run.agent };
    return contextOf(await hooks.ask("SubagentStart", ctx, () => agent));
  }

  /** After a run that was stopped or failed, hooks have the grace period of the run. */
  function lateOptions({ signal, run: { limits: { grace } } }: SessionContext): AskOptions {
    return signal.aborted ? { signal: new AbortController().signal, most: grace } : {};
  }

  async function close(ctx: SessionContext): Promise<void> {
    const { run } = ctx;
    await background.rest(run, run.limits.grace);
    if (run.parent) return;
    await hooks.ask("SessionEnd", ctx, () => ({ reason: "other" }), lateOptions(ctx));
    await background.rest(run, run.limits.grace);
  }

  /** Reports a failure, and returns the result with the reason of a hook that ended the run. */
  async function finish(ctx: SessionContext, result: RunResult): Promise<RunResult> {
    if (result.status === "failed" && !memory.failed.get(ctx)) {
      const message = messageOf(result.error ?? result.reason ?? "The run failed.");
      await askStopFailure(hooks, ctx, "unknown", message, lateOptions(ctx));
    }
    const reason = memory.stopped.get(ctx);
    return reason && result.reason === endReason ? { ...result, reason } : result;
  }

  return {
    async session(ctx, next) {
      const context = await open(ctx);
      const isNew = ctx.source === "new";
      if (!isNew) hooks.addLater(ctx, context);
      let isPaused = false;
      try {
        const result = await next({
          ...(isNew && { context: [...ctx.context, ...context] }),
          ...(watch && { emit: (event) => watch(ctx, event) }),
        });
        isPaused = result.status === "paused";
        return await finish(ctx, result);
      } finally {
        if (isPaused) await background.rest(ctx.run, ctx.run.limits.grace);
        else await close(ctx);
      }
    },
  };
}
