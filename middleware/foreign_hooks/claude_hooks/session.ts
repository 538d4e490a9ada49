/**
 * Around a session: `SessionStart` and `SessionEnd`, or `SubagentStart` in an agent beneath; and what is heard in between.
 *
 * @module
 */
import type { Middleware, RunResult, SessionContext } from "../../../mod.ts";
import { contextOf } from "./answers.ts";
import { hearing } from "./heard.ts";
import { ended, type Hooks } from "./hooks.ts";
import { start } from "./start.ts";

/** Has a middleware warn whoever watches of hooks that are never asked, when a run begins. */
export function warned(middleware: Middleware, silent: readonly string[]): Middleware {
  if (silent.length === 0) return middleware;
  const { name = "hooks" } = middleware;
  return {
    ...middleware,
    async session(ctx, next) {
      for (const message of ctx.run.parent || ctx.resumed ? [] : silent) {
        ctx.emit({ type: "warning", code: "hook.skipped", message, middleware: name, point: "session" });
      }
      return await (middleware.session ? middleware.session(ctx, next) : next());
    },
  };
}

/** The hooks of a middleware at `session`. */
export function session(hooks: Hooks): Pick<Middleware, "session"> {
  const { memory, background } = hooks;
  const hear = hearing(hooks);

  async function opened(ctx: SessionContext): Promise<readonly string[]> {
    const { source, resumed, run } = ctx;
    memory.model.set(ctx, ctx.settings.model.id);
    if (!run.parent) return contextOf(await start(hooks, ctx, source === "new" ? "startup" : "resume"));
    if (resumed) return [];
    const { id: agent_id, agent: agent_type } = run;
    return contextOf(
      await hooks.ask("SubagentStart", ctx, {
        point: "session",
        of: agent_type,
        told: () => ({ agent_id, agent_type }),
      }),
    );
  }

  /** After a run that was stopped, its hooks have as long as anybody's cleanup. */
  async function closed(ctx: SessionContext): Promise<void> {
    const { grace } = ctx.run.limits;
    await background.rest(ctx.run, grace);
    if (ctx.run.parent) return;
    const late = { signal: new AbortController().signal, most: grace };
    await hooks.ask("SessionEnd", ctx, {
      point: "session",
      of: "other",
      told: () => ({ reason: "other" as const }),
      ...(ctx.signal.aborted && late),
    });
    await background.rest(ctx.run, grace);
  }

  /** The result of a run, which says to its caller why a hook has ended it. */
  function explained(ctx: SessionContext, result: RunResult): RunResult {
    const reason = memory.stopped.get(ctx);
    return reason && result.reason === ended ? { ...result, reason } : result;
  }

  return {
    async session(ctx, next) {
      const context = await opened(ctx);
      const isNew = ctx.source === "new";
      if (!isNew) hooks.tellLater(ctx, context);
      try {
        const result = await next({
          ...(isNew && { context: [...ctx.context, ...context] }),
          ...(hear && { emit: (event) => hear(ctx, event) }),
        });
        return explained(ctx, result);
      } finally {
        await closed(ctx);
      }
    },
  };
}
