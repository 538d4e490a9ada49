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
import { anySignal, startTimer } from "../../../src/core/kit.ts";
import { boundedFetch, type McpBounds, tooLarge } from "./bounded_fetch.ts";
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
export function httpTransport(url: string, headers: Readonly<Record<string, string>>, bounds: McpBounds): McpTransport {
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: boundedFetch(bounds),
  });
}

/** Connects to a server and lists its tools. Each of the two, and each call, has the time of the bounds. */
export async function connect(transport: McpTransport, bounds: McpBounds, signal: AbortSignal): Promise<Connection> {
  const client = new Client({ name: "jizai", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const broken = new AbortController();
  const limits = { timeout: bounds.time, maxTotalTimeout: bounds.time };
  client.onerror = ({ message }) => {
    if (/exceeded maximum size/.test(message)) broken.abort(new ToolError(tooLarge(bounds, "A message"))); // the transport stops the process
  };

  /** Asks the server. Throws the reason if that takes too long, or the connection breaks. */
  async function within<T>(signal: AbortSignal, ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const late = new AbortController();
    const timer = startTimer(() => late.abort(), bounds.time);
    try {
      return await ask(anySignal([signal, broken.signal, late.signal]));
    } catch (error) {
      signal.throwIfAborted();
      broken.signal.throwIfAborted();
      throw late.signal.aborted ? timeoutError(bounds) : failureOf(error, bounds);
    } finally {
      clearTimeout(timer);
    }
  }

  async function listTools(): Promise<readonly ServerTool[]> {
    let left = bounds.maxBytes;
    deliverInOrder(transport, (message) => {
      if (left >= 0 && (left -= JSON.stringify(message).length) < 0) {
        broken.abort(new Error(tooLarge(bounds, "The list of tools")));
      }
    });
    const { tools } = await within(signal, (signal) => client.listTools(undefined, { ...limits, signal }));
    left = Infinity;
    return tools;
  }

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
    await within(signal, (signal) => client.connect(transport, { ...limits, signal }));
    return {
      tools: await listTools(),
      close,
      call: (name, input, { signal, progress: onprogress }) =>
        within(signal, async (signal) => {
          return resultOf(await client.callTool({ name, arguments: input }, { ...limits, signal, onprogress }));
        }),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Converts an error. The message of the server's own error is for the model; that of a failed connection is not. */
function failureOf(error: unknown, bounds: McpBounds): unknown {
  if (error instanceof ProtocolError) return new ToolError(error.message, { cause: error });
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout ? timeoutError(bounds) : error;
}

function timeoutError({ time }: McpBounds): DOMException {
  return new DOMException(`The MCP server did not answer within ${time} ms.`, "TimeoutError");
}

/**
 * Delivers each message after the handler of the one before has started, and calls `onMessage` before it. The client starts the handler of a notification a
 * microtask later, but handles a response at once and then drops the notifications of its request, so it would lose the last progress.
 */
function deliverInOrder(transport: McpTransport, onMessage: (message: object) => void): void {
  const deliver = transport.onmessage?.bind(transport);
  let queue = Promise.resolve();
  transport.onmessage = (message, extra) => {
    onMessage(message);
    queue = queue.then(() => deliver?.(message, extra)).catch((error) => transport.onerror?.(error));
  };
}
