/**
 * McpBounds the answers of an MCP server over HTTP: none is read without an end.
 *
 * @module
 */
import { anySignal, startTimer } from "../../../src/core/kit.ts";
import { mendEvents, mendJson } from "./message.ts";

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

/**
 * Creates the `fetch` of one connection. In place of an answer that exceeds the bounds, the client receives an error of the protocol, in both forms that an
 * answer can have: JSON, and a stream of events. Streams that answer no request share one bound, and are refused after that.
 */
export function boundedFetch(bounds: McpBounds): (url: string | URL, init?: RequestInit) => Promise<Response> {
  let unrequested = bounds.maxBytes;
  const takeUnrequested = (bytes: number) => (unrequested -= bytes) >= 0;

  return async (url, init = {}) => {
    if (init.method === "GET") {
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
      return await boundedAnswer(response, { bounds, request: init.body, late: late.signal, done });
    } catch (error) {
      done();
      throw error;
    }
  };
}

/** An answer that is received. */
interface Receiving {
  readonly bounds: McpBounds;
  /** The body of the request. */
  readonly request: unknown;
  /** Aborts when the time is over. */
  readonly late: AbortSignal;
  /** Called when the answer has ended. */
  readonly done: () => void;
}

async function boundedAnswer(response: Response, { bounds, request, late, done }: Receiving): Promise<Response> {
  const type = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  let left = response.ok ? bounds.maxBytes : maxFailure;
  const take = (bytes: number) => (left -= bytes) >= 0;
  const isEvents = response.ok && type === "text/event-stream";
  const ending = isEvents ? () => `\n\ndata: ${refusal(bounds, request)}\n\n` : undefined; // also after half an event
  const bounded = replaceBody(response, (body) => cut(body, { take, late, done, ending }));
  if (isEvents) return replaceBody(bounded, (body) => body.pipeThrough(mendEvents(idOf(request))));
  if (!response.ok || type !== "application/json") return bounded;
  const whole = await bounded.text();
  return replaceBody(response, () => left < 0 ? refusal(bounds, request) : mendJson(whole, idOf(request)));
}

/** Returns the id in the body of a request. */
function idOf(request: unknown): unknown {
  return JSON.parse(String(request)).id;
}

/** Returns the answer to a request whose own answer is too large. */
function refusal(bounds: McpBounds, request: unknown): string {
  return JSON.stringify({ jsonrpc: "2.0", id: idOf(request), error: { code: -32_000, message: tooLarge(bounds) } });
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
