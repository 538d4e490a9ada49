/**
 * Requests to the server, and the frames of a response.
 *
 * @module
 */
import { brand } from "../protocol/brand.ts";
import { emittedForm } from "../protocol/question.ts";
import type { Frame } from "./state.ts";

/** Options of `client()`. */
export interface ClientOptions {
  /** Sends requests, for example to add a token that changes, or to call an app without a network. Default: the global `fetch`. */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
  /** Headers of every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The number of failed attempts in a row after which the client gives up. An event resets the count. Less than 1 reads nothing. Default: 8, which take about a
   * minute.
   */
  readonly attempts?: number;
  /** Milliseconds without data after which a connection counts as lost. It has to exceed the heartbeat of the server; `Infinity` for never. Default: 45,000. */
  readonly silence?: number;
}

/** A server, and the options for requests to it. */
export interface Server extends ClientOptions {
  readonly base: string;
}

/** A request: its path, its headers, and its body if it has one. */
export type ServerRequest = readonly [path: string, headers: Readonly<Record<string, string>>, body?: string];

/** A request that was refused or given up. */
export class ClientError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "ClientError");

  /** The name of the class. */
  override readonly name = "ClientError";

  /** Takes the message, the status of the response, and the reason as a code: the code of the server, or "lost" without one. */
  constructor(message: string, readonly status = 0, readonly code = "lost", options?: ErrorOptions) {
    super(message, options);
  }
}

/**
 * Whether the platform's `fetch` can reach an address. A path needs the address of a page. `localhost:8000` is no path, because its host reads as a scheme. A
 * global `fetch` that was replaced may reach others.
 */
export function isAddress(base: string): boolean {
  return base.includes("://") || (globalThis.location && !/^[^/]*:/.test(base));
}

/** Creates a POST request. Its idempotency key identifies it if it is sent again. */
export function post(path: string, body: unknown, headers?: ServerRequest[1]): ServerRequest {
  const defaultHeaders = { "content-type": "application/json", "idempotency-key": crypto.randomUUID() };
  return [path, { ...defaultHeaders, ...headers }, JSON.stringify(body)];
}

/** Sends a request. Throws a `ClientError` if it is refused. */
export async function send(
  { base, fetch: request = fetch, headers }: Server,
  [path, more, body]: ServerRequest,
  signal?: AbortSignal,
): Promise<Response> {
  const response = await request(base + path, {
    ...(body && { method: "POST", body }),
    headers: { ...headers, ...more },
    signal: signal ?? null,
  });
  const { status } = response;
  if (response.ok) return response;
  const { error }: ErrorBody = await response.json().catch(() => ({})); // a proxy may answer without JSON
  throw new ClientError(
    error?.message ?? `Cannot reach the server: it answered with status ${status}`,
    status,
    error?.code,
  );
}

/** The body of an error response. */
interface ErrorBody {
  readonly error?: { readonly code?: string; readonly message?: string };
}

/** The longest time of a timer. A longer one would run over, and end at once. */
const longest = 2 ** 31 - 1;

/**
 * Sends a request and reads the frames of its response. Throws a `ClientError` with the status of a response without events, or with 204 if the response has
 * no content, whatever its status.
 */
export async function* readFrames(server: Server, request: ServerRequest, signal?: AbortSignal): AsyncGenerator<Frame> {
  const controller = new AbortController(); // not AbortSignal.any(), which the Edge runtime lacks
  let reader: ReadableStreamDefaultReader<string> | undefined;
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  try {
    const { body, status, headers } = await within(send(server, request, controller.signal));
    const type = headers.get("content-type");
    if (!body) throw new ClientError(`Cannot read the response: status ${status} has no content`, 204);
    if (type && !/^text\/event-stream/i.test(type)) {
      throw new ClientError(`Cannot reach the server: it answered with status ${status} and type ${type}`, status);
    }
    reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let id = 0;
    let rest = "";
    for (;;) {
      const { done, value } = await within(reader.read());
      if (done) return;
      rest += value;
      if (!value.includes("\n")) continue; // a long line is split once, when it is complete
      const lines = rest.split("\n"); // numbers and JSON.parse() ignore a \r at the end
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("id:")) id = +line.slice(3);
        else if (line.startsWith("data:")) yield { id, event: emittedForm(JSON.parse(line.slice(5))) };
      }
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    abort();
  }

  function abort(): void {
    controller.abort(signal?.reason);
    // Deno 2.9 reads on after the abort, if its Response was collected as garbage. The read that failed has reported the reason.
    reader?.cancel().catch(() => {});
  }

  function within<T>(work: Promise<T>): Promise<T> {
    const timer = setTimeout(abort, Math.min(server.silence ?? 45_000, longest));
    return work.finally(() => clearTimeout(timer));
  }
}
