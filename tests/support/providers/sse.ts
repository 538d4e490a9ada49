/**
 * Streams of server-sent events, and requests that receive them.
 *
 * @module
 */
import type { Model, ModelEvent, ModelRequest } from "@jizai/jizai";

/** Encodes frames. Each is named by its `type`, if it has one. */
export function sse(values: readonly Readonly<Record<string, unknown>>[], end = ""): string {
  return values.map((value) => {
    const name = typeof value.type === "string" ? `event: ${value.type}\n` : "";
    return `${name}data: ${JSON.stringify(value)}\n\n`;
  }).join("") + end;
}

/** Returns the frames of `stream` up to and including the first that contains `text`. */
export function streamUpTo(text: string, stream: string): string {
  return stream.slice(0, stream.indexOf("\n\n", stream.indexOf(text)) + 2);
}

/** Returns a `fetch` whose response streams these pieces. An error among them cuts the stream. */
export function respond(...pieces: readonly (string | Uint8Array | Error)[]): () => Response {
  const encoder = new TextEncoder();
  return () => {
    let next = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = pieces[next++];
        if (piece === undefined) controller.close();
        else if (piece instanceof Error) controller.error(piece);
        else controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
}

/** Returns the events of a model's response, one array per read. */
export async function readAll(
  model: Model,
  request: Partial<ModelRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<(readonly ModelEvent[])[]> {
  const whole = { model, instructions: "", messages: [], tools: [], options: {}, ...request };
  return await Array.fromAsync(model.stream(whole, { signal }));
}

/** A recorded request. */
export interface SentRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  // deno-lint-ignore no-explicit-any -- tests compare it as a whole
  readonly body: any;
}

/** Returns a `fetch` that responds with one stream after another, repeats the last one, and records the requests. */
export function recordRequests(...streams: readonly string[]) {
  const sent: SentRequest[] = [];
  function fetch(url: string, { headers, body }: RequestInit): Response {
    sent.push({ url, headers: Object.fromEntries(new Headers(headers)), body: JSON.parse(String(body)) });
    return respond(streams[sent.length - 1] ?? streams.at(-1) ?? "")();
  }
  return { sent, fetch };
}

/** Returns the error of `work`. Throws if there is none. */
export async function errorOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(() => {
    throw new Error("Expected an error, but the work succeeded");
  }, (error) => error);
}
