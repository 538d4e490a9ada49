/**
 * MCP servers that are processes, on Deno.
 *
 * @module
 */
import type { McpTransport } from "../transport.ts";
import { processOf, type StdioOptions } from "./process.ts";

export type { StdioOptions };

/**
 * Has an MCP server run as a process, one for each run, which ends with it. Takes the permission to run it, and to read the environment.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { mcp } from "@jizai/jizai/middleware/mcp";
 * import { stdio } from "@jizai/jizai/middleware/mcp/stdio";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const files = stdio("npx", ["-y", "@modelcontextprotocol/server-filesystem", "notes"]);
 * const assistant = agent({ model: scripted("Hello!"), use: [mcp({ servers: { files: { transport: files } } })] });
 * ```
 */
export function stdio(
  command: string,
  args: readonly string[] = [],
  options: StdioOptions = {},
): () => McpTransport {
  return () => processOf(command, args, options);
}
