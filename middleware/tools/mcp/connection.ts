/**
 * Connects to an MCP server for one run.
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

/** Longest time to end a session with a server, in milliseconds. */
const closeTime = 1_000;

/** A tool as its server describes it. */
export type ServerTool = Pick<Tool, "name" | "title" | "description" | "inputSchema" | "annotations">;

/** A connection to a server. */
export interface Connection {
  /** The tools of the server when the connection was opened. */
  readonly tools: readonly ServerTool[];
  /** Calls a tool of the server. */
  call(tool: string, input: Record<string, unknown>, ctx: ToolExecutionContext): Promise<ToolResult>;
  /** Closes the connection. Never rejects. */
  close(): Promise<void>;
}

/** Creates a transport over Streamable HTTP. */
export function httpTransport(url: string, headers: Readonly<Record<string, string>>): McpTransport {
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { ...headers } } });
}

/** Connects to a server and lists its tools. Each answer may take `time` milliseconds. */
export async function connect(transport: McpTransport, time: number, signal: AbortSignal): Promise<Connection> {
  const client = new Client({ name: "jizai", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const within = { timeout: time, maxTotalTimeout: time };

  async function close(): Promise<void> {
    const timer = setTimeout(() => transport.close(), closeTime);
    // a failure to end the session is ignored: the server ends it by itself
    if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession().catch(() => {});
    clearTimeout(timer);
    await client.close().catch(() => {});
    await transport.close().catch(() => {}); // a client that failed to connect does not close it
  }

  try {
    signal.throwIfAborted();
    await client.connect(transport, { ...within, signal });
    deliverInOrder(transport);
    const { tools } = await client.listTools(undefined, { ...within, signal });
    return {
      tools,
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

/** Converts an error. The message of the server's own error is for the model; that of a failed connection is not. */
function failureOf(error: unknown): unknown {
  if (error instanceof ProtocolError) return new ToolError(error.message, { cause: error });
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    return new DOMException(error.message, "TimeoutError");
  }
  return error;
}

/**
 * Delivers each message after the handler of the one before has started. The client starts the handler of a notification a microtask later, but handles a
 * response at once and then drops the notifications of its request, so it would lose the last progress.
 */
function deliverInOrder(transport: McpTransport): void {
  const deliver = transport.onmessage?.bind(transport);
  let queue = Promise.resolve();
  transport.onmessage = (message, extra) => {
    queue = queue.then(() => deliver?.(message, extra)).catch((error) => transport.onerror?.(error));
  };
}
