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
} from "@modelcontextprotocol/client";
import { ToolError, type ToolExecutionContext, type ToolResult } from "../../../mod.ts";
import { anySignal, startTimer } from "../../../src/core/kit.ts";
import { boundedFetch, type McpBounds, tooLarge } from "./bounded_fetch.ts";
import { mendMessage } from "./message.ts";
import { resultOf } from "./result.ts";
import { isObject, type JsonObject, readTool, type ServerTool, type UnusableTool } from "./tool.ts";
import type { McpTransport } from "./transport.ts";

/** Longest time to end a session with a server, in milliseconds. */
const closeTime = 1_000;

/** The tools of a server. */
interface Listed {
  /** Those that can be used. */
  readonly tools: readonly ServerTool[];
  /** The others. */
  readonly unusable: readonly UnusableTool[];
}

/** A connection to a server, with the tools that it had when the connection was opened. */
export interface Connection extends Listed {
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
  const client = new Client({ name: "jizai", version: "1" }, { versionNegotiation: { mode: "auto" }, listMaxPages: 0 });
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

  async function listTools(): Promise<Listed> {
    const listed: (ServerTool | UnusableTool)[] = [];
    const pages = new Set<string>();
    let left = bounds.maxBytes;
    function onMessage(message: object): void {
      if (left >= 0 && (left -= JSON.stringify(message).length) < 0) {
        broken.abort(new Error(tooLarge(bounds, "The list of tools")));
      }
    }

    /** Leaves the tools that can be used, and the cursor unless it leads to a page that was read before. */
    function pageOf({ tools, nextCursor, ttlMs, cacheScope, ...page }: JsonObject): JsonObject {
      if (!Array.isArray(tools ?? [])) {
        broken.abort(new TypeError("Cannot read the tools of the MCP server: expected an array"));
      }
      const all = (Array.isArray(tools) ? tools : []).map(readTool);
      listed.push(...all);
      const key = JSON.stringify([nextCursor, all]);
      const isNew = typeof nextCursor === "string" && !pages.has(key);
      pages.add(key);
      if (!isNew) pages.clear(); // the client may list the tools again
      return {
        ...page,
        tools: all.filter(isUsable),
        ttlMs: Number.isSafeInteger(ttlMs) && Number(ttlMs) > 0 ? ttlMs : 0,
        cacheScope: cacheScope === "public" ? cacheScope : "private",
        ...(isNew && { nextCursor }),
      };
    }

    adaptMessages(transport, onMessage, {
      "tools/list": pageOf,
      "tools/call": (result) => ({ content: [], structuredContent: result }), // resultOf() reads it
    });
    const { tools } = await within(signal, (signal) => client.listTools(undefined, { ...limits, signal }));
    left = Infinity;
    const names = new Set(tools.map(({ name }) => name));
    const unusable = listed.flatMap((tool) => {
      if (!isUsable(tool)) return [tool];
      return names.has(tool.name) ? [] : [{ name: tool.name, fault: "its `x-mcp-header` is not valid" }]; // the client left it out
    });
    return { tools, unusable };
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
      ...await listTools(),
      close,
      call: (name, input, { signal, progress: onprogress }) =>
        within(signal, async (signal) => {
          const called = await client.callTool({ name, arguments: input }, { ...limits, signal, onprogress });
          return resultOf(called.structuredContent as JsonObject); // adaptMessages() has put the whole result there
        }),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function isUsable(tool: ServerTool | UnusableTool): tool is ServerTool {
  return !("fault" in tool);
}

/** Converts an error. The message of the server's own error is for the model; that of a failed connection is not. */
function failureOf(error: unknown, bounds: McpBounds): unknown {
  if (error instanceof ProtocolError) return new ToolError(error.message, { cause: error });
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout ? timeoutError(bounds) : error;
}

function timeoutError({ time }: McpBounds): DOMException {
  return new DOMException(`The MCP server did not answer within ${time} ms.`, "TimeoutError");
}

/** Converts results before the client checks them, by the method of their requests. */
type Adapters = { readonly [method: string]: (result: JsonObject) => JsonObject };

/**
 * Converts results before the client checks them. It refuses a whole list for one tool, and a result for one content, or if it does not fit the schema of the
 * output. Calls `onMessage` before each message, and delivers it after the handler of the one before has started: the client starts the handler of a
 * notification a microtask later, but handles a response at once and then drops the notifications of its request, so it would lose the last progress.
 */
function adaptMessages(transport: McpTransport, onMessage: (message: object) => void, adapters: Adapters): void {
  const [deliver, send] = [transport.onmessage?.bind(transport), transport.send.bind(transport)];
  const requested = new Map<string, string>();
  let queue = Promise.resolve();

  function adapt(given: JsonObject): object {
    const message = mendMessage(given) as JsonObject; // an object, as it was
    const { id, result } = message;
    const adapter = adapters[requested.get(String(id)) ?? ""];
    if (!adapter || !isObject(result) || result.resultType === "input_required") return message;
    requested.delete(String(id));
    return { ...message, result: { resultType: "complete", ...adapter(result) } };
  }

  transport.send = (message: JsonObject, options) => {
    if (typeof message.method === "string") requested.set(String(message.id), message.method);
    return send(message, options);
  };
  transport.onmessage = (message: JsonObject, extra) => {
    onMessage(message);
    queue = queue.then(() => deliver?.(adapt(message), extra)).catch((error) => transport.onerror?.(error));
  };
}
