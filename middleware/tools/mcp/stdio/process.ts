/**
 * Starts the process of an MCP server.
 *
 * @module
 */
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { McpTransport } from "../bounded_fetch.ts";

/** Options of `stdio()`. */
export interface StdioOptions {
  /** Environment of the process. Default: safe variables, such as `PATH` and `HOME`. */
  readonly env?: Readonly<Record<string, string>>;
  /** Working directory of the process. Default: that of this process. */
  readonly cwd?: string;
}

/** Creates a transport that starts the process, and stops it if it sends a message of more than `maxBufferSize` bytes. */
export function processTransport(
  command: string,
  args: readonly string[],
  { env, cwd, maxBufferSize }: StdioOptions & { readonly maxBufferSize: number },
): McpTransport {
  return new StdioClientTransport({
    command,
    args: [...args],
    maxBufferSize,
    ...(env && { env: { ...env } }),
    ...(cwd !== undefined && { cwd }),
  });
}
