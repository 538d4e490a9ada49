/**
 * Connections: one server, for as long as one run has its session open.
 *
 * @module
 */
import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  StreamableHTTPClientTransport,
  type Tool,
} from "@modelcontextprotocol/client";
import { ToolError, type ToolExecutionContext, type ToolResult } from "../../../mod.ts";
import { resultOf } from "./result.ts";
import type { McpTransport } from "./transport.ts";

/** How long leaving a server may take, in milliseconds. */
const grace = 1_000;

/** A tool, as its server tells of it. */
export type Offered = Pick<Tool, "name" | "title" | "description" | "inputSchema">;

/** A server that answers. */
export interface Connection {
  /** The tools that it has now. */
  readonly offered: readonly Offered[];
  /** Has it run a tool. */
  call(tool: string, input: Record<string, unknown>, ctx: ToolExecutionContext): Promise<ToolResult>;
  /** Leaves it. Never rejects. */
  close(): Promise<void>;
}

/** A transport to a server that speaks Streamable HTTP. */
export function overHttp(url: string, headers: Readonly<Record<string, string>>): McpTransport {
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { ...headers } } });
}

/** Connects to a server, and asks for its tools; it may take `time` milliseconds for each answer. */
export async function connect(transport: McpTransport, time: number, signal: AbortSignal): Promise<Connection> {
  const client = new Client({ name: "jizai", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const within = { timeout: time, maxTotalTimeout: time };

  async function close(): Promise<void> {
    const timer = setTimeout(() => transport.close(), grace);
    // a server that is gone has nothing to end
    if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession().catch(() => {});
    clearTimeout(timer);
    await client.close().catch(() => {});
    await transport.close().catch(() => {}); // a client that was not let in does not close it
  }

  try {
    signal.throwIfAborted();
    await client.connect(transport, { ...within, signal });
    const { tools: offered } = await client.listTools(undefined, { ...within, signal });
    return {
      offered,
      close,
      async call(name, input, { signal, progress }) {
        try {
          return resultOf(
            await client.callTool({ name, arguments: input }, { ...within, signal, onprogress: progress }),
          );
        } catch (error) {
          signal.throwIfAborted();
          throw failureOf(error);
        }
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What the server says of a failure is for the model, as its results are; what becomes of the connection is not. */
function failureOf(error: unknown): unknown {
  if (error instanceof ProtocolError) return new ToolError(error.message, { cause: error });
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    return new DOMException(error.message, "TimeoutError");
  }
  return error;
}
