/**
 * What is done about a call that was made.
 *
 * @module
 */
import { textOf, type ToolContext, type ToolResult } from "../../../mod.ts";
import type { Handlers } from "./handlers.ts";
import { modified, told, withheld } from "./result.ts";

/** Asks about a call that succeeded, or failed; of others no hook hears. */
export async function after(
  handlers: Handlers,
  ctx: ToolContext,
  toolArgs: unknown,
  result: ToolResult,
): Promise<ToolResult> {
  const { name: toolName } = ctx;
  if (result.status === "error") {
    const given = { toolName, toolArgs, error: textOf(result) };
    const { additionalContext } = await handlers.ask("onPostToolUseFailure", ctx, "tool", given);
    return also(result, additionalContext && guidance(toolName, additionalContext));
  }
  if (result.status !== "ok" || !handlers.has("onPostToolUse")) return result;
  const given = { toolName, toolArgs, toolResult: told(result) };
  const said = await handlers.ask("onPostToolUse", ctx, "tool", given);
  const { modifiedResult = null, additionalContext, suppressOutput } = said;
  const came = modifiedResult === null ? result : modified(result, modifiedResult);
  return also(suppressOutput ? withheld(came) : came, additionalContext);
}

/** A result, and something for the model beside it. */
export function also(result: ToolResult, context: string | undefined): ToolResult {
  return context ? { ...result, context: [...result.context ?? [], context] } : result;
}

function guidance(tool: string, text: string): string {
  return `Tool "${tool}" failed. Additional guidance from postToolUseFailure hooks:\n${text}`;
}
