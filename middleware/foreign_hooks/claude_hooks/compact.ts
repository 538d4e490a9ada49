/**
 * Around a compaction: `PreCompact`, `PostCompact`, and `SessionStart` for what is to be said again.
 *
 * @module
 */
import { type CompactContext, type Compaction, declined, type Middleware, textOf, user } from "../../../mod.ts";
import { blockOf, contextOf } from "./answers.ts";
import type { Hooks } from "./hooks.ts";
import { start } from "./start.ts";

/** The hooks of a middleware at `compact`. */
export function compact(hooks: Hooks): Pick<Middleware, "compact"> {
  return {
    async compact(ctx, next) {
      const trigger: "manual" | "auto" = ctx.trigger === "manual" ? "manual" : "auto";
      const before = await hooks.ask("PreCompact", ctx, {
        point: "compact",
        of: trigger,
        told: () => ({ trigger, custom_instructions: ctx.instructions || null }),
      });
      const blocked = hooks.dialect.declines ? blockOf(before) : undefined;
      if (blocked !== undefined) return declined(blocked);
      const compaction = await next();
      if (compaction.type === "declined") return compaction;
      await hooks.ask("PostCompact", ctx, {
        point: "compact",
        of: trigger,
        told: () => ({ trigger, compact_summary: summaryOf(ctx, compaction) }),
      });
      if (ctx.run.parent) return compaction;
      const said = contextOf(await start(hooks, ctx, "compact"));
      if (said.length === 0) return compaction;
      return { ...compaction, messages: [...compaction.messages, user(said.join("\n"), hooks.name)] };
    },
  };
}

/** What was not in the transcript before. */
function summaryOf({ transcript }: CompactContext, { messages }: Extract<Compaction, { type: "compacted" }>): string {
  const known = new Set(transcript);
  const added = messages.filter((message) => !known.has(message));
  return added.map((message) => message.role === "tool" ? "" : textOf(message)).join("\n").trim();
}
