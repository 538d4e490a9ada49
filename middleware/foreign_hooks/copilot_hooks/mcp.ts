/**
 * What goes to an MCP server beside a call.
 *
 * @module
 */
import { type ExecuteContext, state, type ToolExecutionContext, type ToolResult } from "../../../mod.ts";
import type { Handlers } from "./handlers.ts";

/** The tool of an MCP server. */
export interface McpTool {
  /** The server. */
  readonly serverName: string;
  /** The tool, as the server names it. */
  readonly toolName: string;
}

/** By the ids of calls that are being made. */
const metas = state<Record<string, Record<string, unknown> | null>>("mcp.meta", () => ({}));

/**
 * The `_meta` that `onPreMcpToolCall` has chosen for a call: for tools that hand their calls to an MCP server. It is null where none is to be sent, and
 * nothing where the hook has not said.
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

/** Makes a call, with what the hook says is sent beside it. */
export async function accompanied(
  handlers: Handlers,
  ctx: ExecuteContext,
  tool: McpTool,
  next: () => Promise<ToolResult>,
): Promise<ToolResult> {
  const { callId, input } = ctx;
  const given = { toolCallId: callId, ...tool, arguments: input };
  const { metaToUse } = await handlers.ask("onPreMcpToolCall", ctx, "execute", given);
  if (metaToUse === undefined) return await next();
  metas.get(ctx)[callId] = metaToUse;
  try {
    return await next();
  } finally {
    delete metas.get(ctx)[callId];
  }
}

/** Tools of MCP servers, by how they are mostly named: `mcp__server__tool`. */
export function namedAsMcp(name: string): McpTool | undefined {
  const [, serverName, toolName] = name.match(/^mcp__(.+?)__(.+)$/) ?? [];
  return serverName === undefined || toolName === undefined ? undefined : { serverName, toolName };
}
