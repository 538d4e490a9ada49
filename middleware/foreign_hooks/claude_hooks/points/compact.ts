/**
 * The `compact` point: PreCompact, PostCompact, and SessionStart for texts that have to be repeated.
 *
 * @module
 */
import { type CompactContext, type Compaction, declined, type Middleware, textOf, user } from "../../../../mod.ts";
import { blockOf, contextOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";
import { startSession } from "./session.ts";

/** Creates the hook at `compact`. */
export function compactHook(hooks: Hooks): Pick<Middleware, "compact"> {
  return {
    async compact(ctx, next) {
      const trigger = ctx.trigger === "manual" ? "manual" : "auto";
      const custom_instructions = ctx.instructions || null;
      const before = await hooks.ask("PreCompact", ctx, () => ({ trigger, custom_instructions }));
      const blocked = hooks.dialect.declines ? blockOf(before) : undefined;
      if (blocked !== undefined) return declined(blocked);
      const compaction = await next();
      if (compaction.type === "declined") return compaction;
      const compact_summary = summaryOf(ctx, compaction);
      await hooks.ask("PostCompact", ctx, () => ({ trigger, compact_summary }));
      if (ctx.run.parent) return compaction;
      const texts = contextOf(await startSession(hooks, ctx, "compact"));
      if (texts.length === 0) return compaction;
      return { ...compaction, messages: [...compaction.messages, user(texts.join("\n"), hooks.name)] };
    },
  };
}

/** Returns the text of the messages that the compaction added. */
function summaryOf({ transcript }: CompactContext, { messages }: Extract<Compaction, { type: "compacted" }>): string {
  const known = new Set(transcript);
  const added = messages.filter((message) => !known.has(message));
  return added.map((message) => message.role === "tool" ? "" : textOf(message)).join("\n").trim();
}
