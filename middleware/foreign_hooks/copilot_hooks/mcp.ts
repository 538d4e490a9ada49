/**
 * The metadata of requests to MCP servers.
 *
 * @module
 */
import { denied, type ExecuteContext, state, type ToolExecutionContext, type ToolResult } from "../../../mod.ts";
import type { Handlers } from "./handlers.ts";

/** A tool of an MCP server. */
export interface McpTool {
  /** The server. */
  readonly serverName: string;
  /** The name of the tool on the server. */
  readonly toolName: string;
}

/** The metadata of running calls, by call id. */
const metas = state<Record<string, Record<string, unknown> | null>>("mcp.meta", () => ({}));

/**
 * Returns the `_meta` that `onPreMcpToolCall` has set for a call, for a tool that passes its calls to an MCP server. Null means that none is sent, undefined
 * that the hook has not decided.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { copilot_hooks, metaOf } from "@jizai/jizai/middleware/copilot_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const search = tool({
 *   name: "mcp__docs__search",
 *   description: "Searches the documents",
 *   input: z.object({ query: z.string() }),
 *   execute: ({ query }, ctx) => `${query} for ${metaOf(ctx)?.tenant}`,
 * });
 * const hooks = copilot_hooks({ onPreMcpToolCall: ({ serverName }) => ({ metaToUse: { tenant: `${serverName}-1` } }) });
 * const model = scripted({ calls: [["mcp__docs__search", { query: "fire" }]] }, "Done.");
 *
 * await agent({ model, tools: [search], use: [hooks] }).run("Look it up").result;
 * const result = model.requests[1]?.messages.at(-1);
 * assertEquals(result?.role === "tool" && result.results[0]?.parts, [{ type: "text", text: "fire for docs-1" }]);
 * ```
 */
export function metaOf(ctx: ToolExecutionContext): Record<string, unknown> | null | undefined {
  return metas.get(ctx)[ctx.callId];
}

/** Runs a call of an MCP tool with the metadata that the hook sets. */
export async function runWithMeta(
  handlers: Handlers,
  ctx: ExecuteContext,
  tool: McpTool,
  next: () => Promise<ToolResult>,
): Promise<ToolResult> {
  const { callId, input } = ctx;
  const fields = { toolCallId: callId, ...tool, arguments: input };
  const { metaToUse, foreign } = await handlers.ask("onPreMcpToolCall", ctx, "execute", fields);
  if (foreign) return denied(`Denied by preMcpToolCall hook: ${foreign.reason || "No reason provided"}`); // no person can be asked any more
  if (metaToUse === undefined) return await next();
  metas.get(ctx)[callId] = metaToUse;
  try {
    return await next();
  } finally {
    delete metas.get(ctx)[callId];
  }
}
