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
  type StreamableHTTPClientTransportOptions,
  type Tool,
} from "@modelcontextprotocol/client";
import { boundedFetch, type McpBounds, type McpTransport, mendMessage, tooLarge } from "./bounded_fetch.ts";
import { resultOf } from "./content.ts";
import {
  answered,
  answeredByHooks,
  questionsOf,
  retryOf,
  reviewedByHooks,
  roundOf,
  type SavedRound,
} from "./questions.ts";
import {
  type Freshness,
  freshnessOf,
  type KnownServer,
  type Listed,
  readTool,
  type ServerTool,
  type UnusableTool,
} from "./tool.ts";
import { type Scope, ToolError, type ToolExecutionContext, type ToolResult } from "../../../mod.ts";
import {
  answersOf,
  anySignal,
  askDuring,
  expectNames,
  expectTime,
  isObject,
  schemaOf,
  startTimer,
  type UnknownObject,
} from "../../../src/core/kit.ts";

// The options of an MCP server, and their checks.

/** An MCP server: its options, and its URL or transport. */
export type McpServer<V = unknown> = McpServerOptions & (McpHttpServer<V> | McpCustomServer<V>);

/** Options of an MCP server. */
export interface McpServerOptions {
  /** The server's own names of the tools to add. A name that the server does not have fails the run. Default: all tools. */
  readonly tools?: readonly string[];
  /**
   * True to add tools that list and read the resources of the server: `mcp__docs__list_resources`, with an optional `cursor`, and `mcp__docs__read_resource`,
   * with a `uri`. Default: false.
   */
  readonly resources?: boolean;
  /** Milliseconds that the server has to connect, to list its tools, and to answer each call. Default: 30,000. */
  readonly time?: number;
  /** Largest answer in bytes, with the notifications before it, and largest list of tools. A process whose message is larger is stopped. Default: 10,000,000. */
  readonly maxBytes?: number;
}

/** An MCP server that is reached over Streamable HTTP. */
export interface McpHttpServer<V = unknown> {
  /** URL of the server. */
  readonly url: string;
  /**
   * A provider of the server's tokens, or a function that returns that of a run. Providers of OAuth of the official client fit, such as
   * `ClientCredentialsProvider`, and objects with `token()`. Default: the server needs no token, or `headers` has it.
   */
  readonly auth?: McpAuth | ((scope: Scope<V>) => McpAuth | Promise<McpAuth>);
  /** Headers of every request, such as a token, or a function that returns those of a run. Default: none. */
  readonly headers?:
    | Readonly<Record<string, string>>
    | ((scope: Scope<V>) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
}

/** A provider of the tokens of a server. */
export type McpAuth = NonNullable<StreamableHTTPClientTransportOptions["authProvider"]>;

/** An MCP server that is reached in another way. */
export interface McpCustomServer<V = unknown> {
  /** Creates a transport of the official client, which bounds its answers itself. Called for each run; the transport is closed after the run. */
  readonly transport: (scope: Scope<V>, bounds: McpBounds) => McpTransport | Promise<McpTransport>;
}

/** Throws a `TypeError` or a `RangeError` if a server has an invalid name, option or address. */
export function expectServer<V>(name: string, server: McpServer<V>): void {
  const subject = `Cannot use MCP server ${JSON.stringify(name)}`;
  if (!/^(?=.{1,32}$)[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/.test(name)) {
    throw new TypeError(`${subject}: its name is invalid; expected 1 to 32 of A-Z a-z 0-9 - and single _`);
  }
  expectNames(subject, server, [
    "url",
    "headers",
    "auth",
    "transport",
    "tools",
    "resources",
    "time",
    "maxBytes",
    "type",
  ]); // files of other clients have a type
  expectAddress(subject, server);
  const { time = 1, maxBytes = 1, tools, resources = false } = server;
  if (typeof resources !== "boolean") {
    throw new TypeError(`${subject}: \`resources\` is ${JSON.stringify(resources)}; expected true or false`);
  }
  if (tools !== undefined && !Array.isArray(tools)) {
    throw new TypeError(`${subject}: \`tools\` is ${JSON.stringify(tools)}; expected a list of names`);
  }
  if (tools?.length === 0) throw new TypeError(`${subject}: \`tools\` is empty; expected at least one name`);
  expectTime(`${subject}: \`time\``, time);
  if (!(maxBytes >= 1)) throw new RangeError(`${subject}: \`maxBytes\` is ${maxBytes}; expected 1 or more`);
}

/** Throws a `TypeError` if a server has neither a URL nor a function that creates a transport. */
function expectAddress<V>(subject: string, server: McpServer<V>): void {
  const { url, transport, auth }: { readonly [name in "url" | "transport" | "auth"]?: unknown } = server;
  if (transport !== undefined && typeof transport !== "function") {
    throw new TypeError(`${subject}: \`transport\` is ${JSON.stringify(transport)}; expected a function`);
  }
  if (url !== undefined && !/^https?:$/.test(URL.parse(String(url))?.protocol ?? "")) {
    throw new TypeError(`${subject}: \`url\` is ${JSON.stringify(url)}; expected an http or https URL`);
  }
  if (auth !== undefined && typeof auth !== "function" && !isProvider(auth)) {
    const expected = "a provider of OAuth, an object with token(), or a function";
    throw new TypeError(`${subject}: \`auth\` is ${JSON.stringify(auth)}; expected ${expected}`);
  }
  if (url === undefined && transport === undefined) {
    throw new TypeError(`${subject}: it has no address; expected \`url\`, or \`transport\`, a function`);
  }
}

function isProvider(auth: unknown): boolean {
  const { token, tokens }: UnknownObject = Object(auth);
  return typeof token === "function" || typeof tokens === "function";
}

// Connects one run to a server: lists its tools, calls them, and closes the connection.

/** Longest time to end a session with a server, in milliseconds. */
const closeTime = 1_000;

/** A connection to a server, with the tools that it had when the connection was opened, or when they were listed before. */
export interface Connection extends Listed {
  /** The tools to keep, with their freshness. Undefined if they were kept before, or the server is older than 2026. */
  readonly fresh?: { readonly known: KnownServer; readonly freshness: Freshness } | undefined;
  /** Calls a tool of the server. Pauses the call if the server needs the input of a person, and continues it with the answers. */
  call(tool: string, input: Record<string, unknown>, ctx: ToolExecutionContext): Promise<ToolResult>;
  /** Sends another request, and returns its result as it is. */
  request(method: string, params: object, ctx: ToolExecutionContext): Promise<UnknownObject>;
  /** Closes the connection. Never rejects. */
  close(): Promise<void>;
}

/** Options of `httpTransport()`. */
interface HttpOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly auth: McpAuth | undefined;
  readonly bounds: McpBounds;
}

/** Creates a transport over Streamable HTTP. */
export function httpTransport(url: string, { headers, auth, bounds }: HttpOptions): McpTransport {
  const { host, href } = new URL(url);
  return new StreamableHTTPClientTransport(new URL(href), {
    fetch: boundedFetch(bounds, { host, headers }),
    ...(auth && { authProvider: auth }),
  });
}

/** Options of `connect()`. */
export interface ConnectOptions {
  readonly bounds: McpBounds;
  readonly signal: AbortSignal;
  /** The greeting and the tools of the server, if they were listed before. */
  readonly known: KnownServer | undefined;
  /** Called if a call fails that relied on `known`. */
  readonly forget: (known: KnownServer) => void;
}

/** The questions of a server that a person can answer. */
const capabilities = { elicitation: { form: {}, url: {} } };
/** The schema of a result that the client does not check: every object. */
const anyResult = /* @__PURE__ */ schemaOf<UnknownObject>({});
/** The most answers in a row with which a server asks to be called again, without a question. */
const maxRounds = 10;

/** Connects to a server and lists its tools. Each of the two, and each call, has the time of the bounds. */
export async function connect(
  server: string,
  transport: McpTransport,
  { bounds, signal, known, forget }: ConnectOptions,
): Promise<Connection> {
  const options = { capabilities, versionNegotiation: { mode: "auto" }, listMaxPages: 0 } as const;
  const client = new Client({ name: "jizai", version: "1" }, options);
  client["_requestMessageId"] = Math.floor(Math.random() * 2 ** 31); // a call that continues may not have the id that it had on an earlier connection
  hideCapabilities(transport);
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

  async function listTools(): Promise<Listed & { readonly freshness: Freshness | undefined }> {
    let freshness: Freshness | undefined;
    const listed: (ServerTool | UnusableTool)[] = [];
    const pages = new Set<string>();
    let left = bounds.maxBytes;
    function onMessage(message: object): void {
      if (left >= 0 && (left -= JSON.stringify(message).length) < 0) {
        broken.abort(new Error(tooLarge(bounds, "The list of tools")));
      }
    }

    /** Leaves the tools that can be used, and the cursor unless it leads to a page that was read before. */
    function pageOf({ tools, nextCursor, ...page }: UnknownObject): UnknownObject {
      freshness = freshnessOf(page, freshness);
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
        ttlMs: 0, // KnownServers keeps it
        cacheScope: "private",
        ...(isNew && { nextCursor }),
      };
    }

    adaptMessages(transport, onMessage, { ...adapters, "tools/list": pageOf });
    const { tools } = await within(signal, (signal) => client.listTools(undefined, { ...limits, signal }));
    left = Infinity;
    const names = new Set(tools.map(({ name }) => name));
    const unusable = listed.flatMap((tool) => {
      if (!isUsable(tool)) return [tool];
      return names.has(tool.name) ? [] : [{ name: tool.name, fault: "its `x-mcp-header` is not valid" }]; // the client left it out
    });
    return { tools, unusable, freshness };
  }

  /** Connects without a request, with what is known of the server. */
  async function reconnect(known: KnownServer): Promise<Connection> {
    const prior = { kind: "modern", discover: known.greeting } as const;
    await within(signal, (signal) => client.connect(transport, { ...limits, signal, prior }));
    adaptMessages(transport, () => {}, adapters);
    return { ...known, call, request, close };
  }

  async function call(name: string, input: UnknownObject, ctx: ToolExecutionContext): Promise<ToolResult> {
    const { signal, progress: onprogress } = ctx;

    /** Pauses the call if questions are open. */
    function ask(round: SavedRound): SavedRound {
      const questions = questionsOf(server, round);
      if (questions.length > 0) throw askDuring(ctx, questions, round);
      return round;
    }

    const toolDefinition = known?.tools.find((tool) => tool.name === name);
    const listed = toolDefinition && { toolDefinition: toolDefinition as Tool }; // readTool() has read it
    const paused = answersOf(ctx);
    const before = (paused?.saved ?? {}) as SavedRound; // ask() saved it
    let round = paused &&
      ask(await reviewedByHooks(server, { before, round: answered(before, paused.answers) }, ctx));
    for (let rounds = 0; rounds < maxRounds; rounds++) {
      const params = { name, arguments: input, ...retryOf(round) };
      const called = await within(signal, (signal) => {
        return client.callTool(params, { ...limits, ...listed, signal, onprogress, allowInputRequired: true });
      }).catch((error) => {
        if (known && !signal.aborted) forget(known);
        throw error;
      });
      if (called.resultType !== "input_required") return resultOf(called.structuredContent as UnknownObject); // adaptMessages() has put the whole result there
      round = ask(await answeredByHooks(server, roundOf(called), ctx));
    }
    throw new ToolError(`Cannot finish the call: the MCP server asked ${maxRounds} times to be called again.`);
  }

  async function request(method: string, params: object, { signal }: ToolExecutionContext): Promise<UnknownObject> {
    return await within(signal, (signal) => {
      return client.request({ method, params: { ...params } }, anyResult, { ...limits, signal });
    });
  }

  async function close(): Promise<void> {
    const timer = setTimeout(() => transport.close(), closeTime);
    // a failure to end the session is ignored: the server ends it by itself
    if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession().catch(() => {});
    clearTimeout(timer);
    await client.close().catch(() => {});
    await transport.close().catch(() => {}); // a client that failed to connect does not close it
  }

  const adapters: Adapters = {
    "tools/call": (result) => ({ content: [], structuredContent: result }), // resultOf() reads it
  };
  try {
    signal.throwIfAborted();
    if (known) return await reconnect(known);
    await within(signal, (signal) => client.connect(transport, { ...limits, signal }));
    const { freshness, ...listed } = await listTools();
    const greeting = client.getDiscoverResult();
    return {
      ...listed,
      call,
      request,
      close,
      fresh: greeting && freshness && { known: { ...listed, greeting }, freshness },
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

/** Hides the capabilities from a server before 2026, which would wait for an answer: a pause ends its connection. */
function hideCapabilities(transport: McpTransport): void {
  const send = transport.send.bind(transport);
  transport.send = (message: UnknownObject, options) => {
    const { method, params } = message;
    return send(
      method === "initialize" ? { ...message, params: { ...Object(params), capabilities: {} } } : message,
      options,
    );
  };
}

/** Converts results before the client checks them, by the method of their requests. */
type Adapters = { readonly [method: string]: (result: UnknownObject) => UnknownObject };

/**
 * Converts results before the client checks them. It refuses a whole list for one tool, and a result for one content, or if it does not fit the schema of the
 * output. Calls `onMessage` before each message, and delivers it after the handler of the one before has started: the client starts the handler of a
 * notification a microtask later, but handles a response at once and then drops the notifications of its request, so it would lose the last progress.
 */
function adaptMessages(transport: McpTransport, onMessage: (message: object) => void, adapters: Adapters): void {
  const [deliver, send] = [transport.onmessage?.bind(transport), transport.send.bind(transport)];
  const requested = new Map<string, string>();
  let queue = Promise.resolve();

  function adapt(schema: UnknownObject): object {
    const message = mendMessage(schema) as UnknownObject; // an object, as it was
    const { id, result } = message;
    const adapter = adapters[requested.get(String(id)) ?? ""];
    if (!adapter || !isObject(result) || result.resultType === "input_required") return message;
    requested.delete(String(id));
    return { ...message, result: { resultType: "complete", ...adapter(result) } };
  }

  transport.send = (message: UnknownObject, options) => {
    if (typeof message.method === "string") requested.set(String(message.id), message.method);
    return send(message, options);
  };
  transport.onmessage = (message: UnknownObject, extra) => {
    onMessage(message);
    queue = queue.then(() => deliver?.(adapt(message), extra)).catch((error) => transport.onerror?.(error));
  };
}
