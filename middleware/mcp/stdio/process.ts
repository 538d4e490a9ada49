/**
 * Processes that speak MCP.
 *
 * @module
 */
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { McpTransport } from "../transport.ts";
import type { StdioOptions } from "./mod.ts";

/** A transport to a process, which begins with it. */
export function processOf(command: string, args: readonly string[], { env, cwd }: StdioOptions): McpTransport {
  return new StdioClientTransport({
    command,
    args: [...args],
    ...(env && { env: { ...env } }),
    ...(cwd !== undefined && { cwd }),
  });
}
