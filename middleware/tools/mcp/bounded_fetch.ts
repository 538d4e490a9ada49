/**
 * Bounds the answers of an MCP server over HTTP: none is read without an end.
 *
 * @module
 */
import { anySignal, isObject, startTimer, type UnknownObject } from "../../../src/core/kit.ts";

// Declares the transport of the official MCP client.

/** Carries messages to a server and back. The transports of `@modelcontextprotocol/client` implement it. */
export interface McpTransport {
  /** Starts to receive messages. */
  start(): Promise<void>;
  /** Sends a message. */
  send(message: object, options?: object): Promise<void>;
  /** Closes the transport. */
  close(): Promise<void>;
  /** Called when the transport has closed. */
  onclose?(): void;
  /** Called when the transport fails. */
  onerror?(error: Error): void;
  /** Called for each message of the server. */
  onmessage?(message: object, extra?: object): void;
}

// Mends JSON-RPC messages of MCP servers. The client drops a message that is not exactly of its form, and would wait for the response until the time is over.

/** The code of JSON-RPC for an error within the server. */
const internalError = -32_603;

/**
 * Returns a message without members that are null. A response gets the form of the protocol: an error with a code and a text, or an object as its result.
 * `request` is the id of the request, for a response without one.
 */
export function mendMessage(message: unknown, request?: unknown): unknown {
  if (!isObject(message)) return message;
  const { id, method, result, error } = message;
  const isFailure = error !== undefined && error !== null;
  const isAnswer = !method && ("result" in message || (id ?? undefined) !== undefined);
  const isResponse = isFailure || isAnswer || (result ?? undefined) !== undefined;
  if (!isResponse) return Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null));
  return {
    jsonrpc: "2.0",
    id: id ?? request,
    ...(isFailure ? { error: errorOf(error) } : { result: readableResult(result) }),
  };
}

function errorOf(error: unknown): UnknownObject {
  const { code, message = error, data }: UnknownObject = isObject(error) ? error : {};
  return {
    code: Number.isSafeInteger(Number(code)) ? Number(code) : internalError,
    message: typeof message === "string" ? message : JSON.stringify(message),
    ...(data !== undefined && { data }),
  };
}

function readableResult(result: unknown): UnknownObject {
  if (!isObject(result)) return Array.isArray(result) && result.length === 0 ? {} : { content: result };
  const { _meta, ...members } = result;
  const isGreeting = "protocolVersion" in result || "supportedVersions" in result;
  return { ...(isGreeting ? greetingOf(members) : members), ...(isObject(_meta) && { _meta }) };
}

/** Returns the first result of a server with the members that are used. Servers write null, lists and texts for the others. */
function greetingOf({ capabilities, serverInfo, instructions: _, ...greeting }: UnknownObject): UnknownObject {
  const { tools }: UnknownObject = Object(capabilities);
  const { name, version }: UnknownObject = Object(serverInfo);
  return {
    ...Object.fromEntries(Object.entries(greeting).filter(([, value]) => value !== null)),
    capabilities: tools === undefined || tools === null || tools === false ? {} : { tools: {} },
    serverInfo: { name: String(name), version: String(version) },
  };
}

/** Mends the messages of a response in JSON: one, or a list. */
function mendJson(text: string, request: unknown): string {
  try {
    const parsed: unknown = JSON.parse(text);
    return JSON.stringify(
      Array.isArray(parsed) ? parsed.map((message) => mendMessage(message, request)) : mendMessage(parsed, request),
    );
  } catch {
    return text; // the client reports it
  }
}

/** Mends the messages of a stream of events, each in a line. */
function mendEvents(request: unknown): TransformStream<Uint8Array, Uint8Array> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  let pieces: string[] = [];
  const mendLine = (line: string) =>
    line.replace(/^(data: ?)(\{.*\})(\r?)$/s, (_, name, text, end) => name + mendJson(text, request) + end);
  return new TransformStream({
    transform(bytes, controller) {
      const lines = decoder.decode(bytes, { stream: true }).split("\n");
      const last = lines.pop() ?? "";
      for (const line of lines) {
        controller.enqueue(encoder.encode(`${mendLine([...pieces, line].join(""))}\n`));
        pieces = [];
      }
      pieces.push(last);
    },
    flush: (controller) => controller.enqueue(encoder.encode(mendLine(pieces.join("") + decoder.decode()))),
  });
}

// Bounds the bytes and the time of each answer, and answers in place of a server that exceeds them.

/** The bounds of the answers of a server. */
export interface McpBounds {
  /** Largest answer in bytes. */
  readonly maxBytes: number;
  /** Milliseconds that an answer may take. */
  readonly time: number;
}

/** Bytes of a failed response that its error contains. */
const maxFailure = 10_000;
/** Bytes that each stream without a request counts at least, so that a server cannot have it opened again for ever. */
const minStream = 10_000;

/** Returns the text of the error for an answer that is too large. */
export function tooLarge({ maxBytes }: McpBounds, subject = "The answer"): string {
  return `${subject} of the MCP server has more than ${maxBytes} bytes.`;
}

/** The host that receives headers, and no other one: an authorization server is another host. */
interface Addressed {
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Creates the `fetch` of one connection. In place of an answer that exceeds the bounds, the client receives an error of the protocol, in both forms that an
 * answer can have: JSON, and a stream of events. Streams that answer no request share one bound, and are refused after that.
 */
export function boundedFetch(
  bounds: McpBounds,
  { host, headers }: Addressed,
): (url: string | URL, init?: RequestInit) => Promise<Response> {
  let unrequested = bounds.maxBytes;
  const takeUnrequested = (bytes: number) => (unrequested -= bytes) >= 0;

  return async (url, request = {}) => {
    const isOwn = new URL(url).host === host;
    const init = isOwn ? { ...request, headers: merged(headers, request.headers) } : request;
    if (init.method === "GET" && new Headers(init.headers).get("accept") === "text/event-stream") {
      if (!takeUnrequested(minStream)) return new Response(null, { status: 405 }); // as a server without such streams answers
      return replaceBody(await fetch(url, init), (body) => cut(body, { take: takeUnrequested }));
    }
    const late = new AbortController();
    const timer = startTimer(() => late.abort(), bounds.time);
    const done = () => clearTimeout(timer);
    try {
      const signal = init.signal ? anySignal([init.signal, late.signal]) : late.signal;
      const response = await fetch(url, { ...init, signal });
      if (!response.body) done();
      const message = messageOf(init.body);
      return await boundedAnswer(response, { bounds, message, late: late.signal, done });
    } catch (error) {
      done();
      throw error;
    }
  };
}

/** An answer that is received. */
interface Receiving {
  readonly bounds: McpBounds;
  /** The message that was sent. Undefined for a request to an authorization server. */
  readonly message: UnknownObject | undefined;
  /** Aborts when the time is over. */
  readonly late: AbortSignal;
  /** Called when the answer has ended. */
  readonly done: () => void;
}

async function boundedAnswer(response: Response, { bounds, message, late, done }: Receiving): Promise<Response> {
  const type = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  const id = message?.id;
  let left = response.ok ? bounds.maxBytes : maxFailure;
  const take = (bytes: number) => (left -= bytes) >= 0;
  const isEvents = response.ok && type === "text/event-stream";
  const ending = isEvents ? () => `\n\ndata: ${refusal(bounds, id)}\n\n` : undefined; // also after half an event
  const bounded = replaceBody(response, (body) => cut(body, { take, late, done, ending }));
  if (isEvents) return replaceBody(bounded, (body) => body.pipeThrough(mendEvents(id)));
  if (!message || !response.ok) { // the client leaves some of these unread
    const whole = await bounded.text();
    return replaceBody(response, () => whole);
  }
  if (type !== "application/json") return bounded;
  const whole = await bounded.text();
  return replaceBody(response, () => left < 0 ? refusal(bounds, id) : mendJson(whole, id));
}

/** Returns the message in a body. */
function messageOf(body: unknown): UnknownObject | undefined {
  const value: unknown = typeof body === "string" && body.startsWith("{") ? JSON.parse(body) : undefined;
  return isObject(value) && value.jsonrpc !== undefined ? value : undefined;
}

/** Returns headers, of which those of the client count more. */
function merged(headers: Addressed["headers"], clients: HeadersInit | undefined): Headers {
  const all = new Headers(headers);
  new Headers(clients).forEach((value, name) => all.set(name, value));
  return all;
}

/** Returns the answer to a request whose own answer is too large. */
function refusal(bounds: McpBounds, id: unknown): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_000, message: tooLarge(bounds) } });
}

/** Returns a response with a body made of its own, if it has one. */
function replaceBody(response: Response, make: (body: ReadableStream<Uint8Array>) => BodyInit): Response {
  const { body, status, statusText, headers } = response;
  return body ? new Response(make(body), { status, statusText, headers }) : response;
}

/** Options of `cut()`. */
interface CutOptions extends Partial<Pick<Receiving, "late" | "done">> {
  /** Takes bytes from the bound; false once there are too many. */
  readonly take: (bytes: number) => boolean;
  /** Returns the end of a body that was cut. Default: none. */
  readonly ending?: (() => string) | undefined;
}

/** Returns a body until it exceeds its bounds. */
function cut(
  body: ReadableStream<Uint8Array>,
  { take, late, done = () => {}, ending = () => "" }: CutOptions,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();

  /** Returns the next bytes, `undefined` at the end, and false if the body exceeds its bounds. */
  async function read(): Promise<Uint8Array | false | undefined> {
    try {
      const { value } = await reader.read();
      return !value || take(value.length) ? value : false;
    } catch (error) {
      if (late?.aborted) return false;
      throw error;
    }
  }

  return new ReadableStream({
    async pull(controller) {
      try {
        const bytes = await read();
        if (bytes) return controller.enqueue(bytes);
        done();
        if (bytes === false) controller.enqueue(new TextEncoder().encode(ending()));
        controller.close();
        void reader.cancel().catch(() => {}); // the connection is of no further use
      } catch (error) {
        done();
        controller.error(error);
      }
    },
    async cancel(reason) {
      done();
      await reader.cancel(reason);
    },
  });
}
