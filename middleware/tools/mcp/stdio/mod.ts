/**
 * Runs MCP servers as processes, on Deno, Node and Bun.
 *
 * @module
 */
import { expectNames } from "../../../../src/core/kit.ts";
import type { McpBounds, McpTransport } from "../bounded_fetch.ts";
import { processTransport, type StdioOptions } from "./process.ts";
export type { McpBounds, McpTransport } from "../bounded_fetch.ts";

export type { StdioOptions };

/**
 * Runs an MCP server as a process: each run of the agent starts one, and stops it at its end. Deno asks for permission to run it and to read the
 * environment.
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
): (scope: unknown, bounds: McpBounds) => McpTransport {
  expectNames("Cannot create stdio()", options, ["env", "cwd"]);
  return (_, { maxBytes }) => processTransport(command, args, { ...options, maxBufferSize: maxBytes });
}
