/**
 * Connections: one request, and the frames that it brings.
 *
 * @module
 */
import type { Frame } from "./state.ts";

/** What `client()` takes. */
export interface ClientOptions {
  /** Sends requests: to add what changes, such as a token, or to reach an app without a network. Default: the platform's. */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
  /** Sent with every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How many tries in a row may fail before it gives up; what is heard starts the count anew. Default: 8, which takes most of a minute. */
  readonly attempts?: number;
  /** Milliseconds without a byte after which a connection counts as lost: more than a heartbeat of the server. Default: 45,000. */
  readonly silence?: number;
}

/** A server, and how it is reached. */
export interface Server extends ClientOptions {
  readonly base: string;
}

/** A request: its path, its headers, and its body if it has one. */
export type Asking = readonly [path: string, headers: Readonly<Record<string, string>>, body?: string];

/** A request that was refused, or given up. */
export class ClientError extends Error {
  /** Says what could not be done, the status of the answer, and why as a word: the server's own, or "lost" where there was none. */
  constructor(message: string, readonly status = 0, readonly code = "lost", options?: ErrorOptions) {
    super(message, options);
  }
}

/** A request that something be done. Where it is sent again, its key tells that it is the same. */
export function post(path: string, body: unknown): Asking {
  return [
    path,
    { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    JSON.stringify(body),
  ];
}

/** Sends a request. Throws a `ClientError` where it is refused. */
export async function ask(
  { base, fetch: send = fetch, headers }: Server,
  [path, more, body]: Asking,
  signals: AbortSignal[] = [],
): Promise<Response> {
  const response = await send(base + path, {
    ...(body && { method: "POST", body }),
    headers: { ...headers, ...more },
    signal: AbortSignal.any(signals),
  });
  const { status } = response;
  if (response.ok) return response;
  const { error }: Refused = await response.json().catch(() => ({})); // whoever is in between speaks no JSON
  throw new ClientError(error?.message ?? `Status ${status}`, status, error?.code);
}

/** What a server says of a request that it refuses. */
interface Refused {
  readonly error?: { readonly code?: string; readonly message?: string };
}

/** The frames that a request brings: each an event in one line of data, after its id. Throws a `ClientError` of status 204 where there are none. */
export async function* listen(server: Server, asking: Asking, signal?: AbortSignal): AsyncGenerator<Frame> {
  const silent = new AbortController();
  const { body } = await within(ask(server, asking, signal ? [signal, silent.signal] : [silent.signal]));
  if (!body) throw new ClientError("No content", 204);
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let id = 0;
    let rest = "";
    for (;;) {
      const { done, value } = await within(reader.read());
      if (done) return;
      const lines = (rest + value).split("\n"); // before it, a \r is nothing but space to numbers and to JSON
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("id:")) id = Number(line.slice(3));
        else if (line.startsWith("data:")) yield { id, event: JSON.parse(line.slice(5)) };
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // it was cut, and whoever reads has heard of that
  }

  async function within<T>(work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => silent.abort(), server.silence ?? 45_000);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }
}
