/**
 * Worktrees: hooks create and remove them for the tools `EnterWorktree` and `ExitWorktree`.
 *
 * @module
 */
import { failed, type ToolContext, type ToolResult } from "../../../../mod.ts";
import { objectOf } from "../../kit/fields.ts";
import { blockOf, lastOf } from "../ask/answers.ts";
import type { Hooks } from "../ask/hooks.ts";

/** Asks WorktreeCreate for a call of `EnterWorktree`. Returns the input with the path, or a failed result. */
export async function enterWorktree(
  hooks: Hooks,
  ctx: ToolContext,
  input: unknown,
): Promise<{ readonly input: unknown } | ToolResult> {
  if (ctx.name !== "EnterWorktree" || !hooks.has("WorktreeCreate")) return { input };
  const fields = objectOf(input);
  const name = typeof fields.name === "string" ? fields.name : ctx.call.id;
  const answers = await hooks.ask("WorktreeCreate", ctx, () => ({ name }));
  const path = lastOf(answers, hooks.dialect, ({ specific }) => specific.worktreePath);
  const problem = blockOf(answers) ?? (path === undefined ? "No hook returned its path." : undefined);
  if (path === undefined || problem !== undefined) return failed(`Cannot create the worktree ${name}: ${problem}`);
  hooks.memory.worktree.set(ctx, path);
  return { input: { ...fields, path } };
}

/** Asks WorktreeRemove after a call of `ExitWorktree`. */
export async function leaveWorktree({ ask, memory }: Hooks, ctx: ToolContext, { status }: ToolResult): Promise<void> {
  const worktree_path = memory.worktree.get(ctx);
  const isKept = objectOf(ctx.input).action === "keep";
  if (ctx.name !== "ExitWorktree" || status !== "ok" || worktree_path === "" || isKept) return;
  memory.worktree.set(ctx, "");
  await ask("WorktreeRemove", ctx, () => ({ worktree_path }));
}
