/**
 * Processes that speak MCP.
 *
 * @module
 */
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { McpTransport } from "../transport.ts";

/** How a process is started. */
export interface StdioOptions {
  /** Its environment. Default: what is safe to pass on, such as `PATH` and `HOME`. */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder it works in. Default: this one. */
  readonly cwd?: string;
}

/** A transport to a process, which begins with it. */
export function processOf(command: string, args: readonly string[], { env, cwd }: StdioOptions): McpTransport {
  return new StdioClientTransport({
    command,
    args: [...args],
    ...(env && { env: { ...env } }),
    ...(cwd !== undefined && { cwd }),
  });
}
