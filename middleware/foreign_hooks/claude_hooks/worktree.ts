/**
 * Worktrees: the tools `EnterWorktree` and `ExitWorktree` make and remove them, and hooks make them in the tool's place.
 *
 * @module
 */
import { failed, type ToolContext, type ToolResult } from "../../../mod.ts";
import { blockOf, lastOf } from "./answers.ts";
import type { Hooks } from "./hooks.ts";

/** What a call is made with that enters a worktree: where hooks have made it; or the result, where they could not. */
export async function entering(
  hooks: Hooks,
  ctx: ToolContext,
  input: unknown,
): Promise<{ readonly input: unknown } | ToolResult> {
  if (ctx.name !== "EnterWorktree" || !hooks.has("WorktreeCreate")) return { input };
  const fields = fieldsOf(input);
  const name = typeof fields.name === "string" ? fields.name : ctx.call.id;
  const answers = await hooks.ask("WorktreeCreate", ctx, { point: "tool", told: () => ({ name }) });
  const path = lastOf(answers, hooks.dialect, ({ specific }) => specific.worktreePath);
  const why = blockOf(answers) ?? (path === undefined ? "No hook has made it." : undefined);
  if (path === undefined || why !== undefined) return failed(`The worktree ${name} could not be made: ${why}`);
  hooks.memory.worktree.set(ctx, path);
  return { input: { ...fields, path } };
}

/** Tells of a worktree that a call has removed. */
export async function leaving({ ask, memory }: Hooks, ctx: ToolContext, { status }: ToolResult): Promise<void> {
  const path = memory.worktree.get(ctx);
  if (ctx.name !== "ExitWorktree" || status !== "ok" || path === "" || fieldsOf(ctx.input).action === "keep") return;
  memory.worktree.set(ctx, "");
  await ask("WorktreeRemove", ctx, { point: "tool", told: () => ({ worktree_path: path }) });
}

function fieldsOf(input: unknown): Readonly<Record<string, unknown>> {
  return typeof input === "object" && input !== null ? { ...input } : {};
}
