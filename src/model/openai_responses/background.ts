/**
 * Background responses: OpenAI goes on with a response while no connection to it is open, and a new connection receives the rest of its stream.
 *
 * @module
 */
import { ModelError, type ModelEvent } from "../model.ts";
import { type Provider, type ResponseParser, streamResponse } from "../provider.ts";
import { isObject } from "../../protocol/shape.ts";

/** The failures in a row, without an event between them, after which a response is given up. */
const maxFailures = 5;

/** Milliseconds before the second attempt to connect again. They double with each further one. */
const firstWait = 1_000;

/** Milliseconds that a cancellation may take: less than a run waits for a model that it stops. */
const cancelTime = 900;

/** Matches the events that end a response. */
const lastEvent = /^response\.(completed|incomplete|failed|cancelled|done)$/;

/**
 * Sends the body of a background response and parses its stream. A connection that is lost is opened again after the last event, and the response is not
 * requested a second time. It is cancelled if `signal` aborts, if its reader stops, or if no new connection can be opened.
 */
export async function* streamBackground(
  server: Provider,
  body: string,
  parser: ResponseParser,
  signal: AbortSignal,
): AsyncGenerator<readonly ModelEvent[]> {
  /** The provider's id of the response, and the number of its last event that was read. */
  let id = "";
  let cursor: number | undefined;
  let isOver = false;

  const parse: ResponseParser["parse"] = (frame, events) => {
    const { type, sequence_number: number, response } = frame;
    if (typeof number === "number") cursor = number;
    if (isObject(response) && typeof response.id === "string") id = response.id;
    isOver ||= lastEvent.test(String(type));
    return parser.parse(frame, events);
  };
  const tracked: ResponseParser = { parse, end: parser.end, readsAll: () => true }; // each frame has a number

  /** Reads the stream of one connection. Returns the failure if it ended before the response did. */
  async function* read(): AsyncGenerator<readonly ModelEvent[], unknown> {
    const rest = id === "" ? server : { ...server, url: addressOf(server, id, restOf(body, cursor)) };
    try {
      yield* streamResponse(rest, id === "" ? body : undefined, tracked, signal);
      return isOver ? undefined : cutOff(server.model);
    } catch (error) {
      return error;
    }
  }

  try {
    for (let failures = 1;; failures++) {
      const before = cursor;
      const failure = yield* read();
      if (failure === undefined) return;
      if (cursor !== before) failures = 1;
      const isLost = failure instanceof ModelError && failure.recoverable;
      // without numbers of its events, a new connection would repeat the response
      if (isOver || id === "" || cursor === undefined || !isLost || failures === maxFailures) throw failure;
      if (failures > 1) await wait(failure.retryAfter ?? firstWait * 2 ** (failures - 2), signal);
    }
  } finally {
    if (!isOver && id !== "") await cancel(server, id);
  }
}

function cutOff(model: string): ModelError {
  return new ModelError(`Cannot read the response of ${model}: the stream was cut`, { recoverable: true });
}

/** Returns the query for the events after `cursor`. It repeats what the request asked to include. */
function restOf(body: string, cursor: number | undefined): readonly (readonly [name: string, value: string])[] {
  const { include = [], store }: { readonly include?: readonly string[]; readonly store?: unknown } = JSON.parse(body);
  const included = include.filter((name) => store !== true || name !== "reasoning.encrypted_content"); // refused then
  return [
    ["stream", "true"],
    ...(cursor === undefined ? [] : [["starting_after", `${cursor}`] as const]),
    ...included.map((name) => ["include[]", name] as const),
  ];
}

/** Returns the address of a response. The query of the server's address is kept. */
function addressOf(
  { url }: Provider,
  id: string,
  query: readonly (readonly [name: string, value: string])[],
  action = "",
): string {
  const address = new URL(url);
  address.pathname += `/${encodeURIComponent(id)}${action}`;
  for (const [name, value] of query) address.searchParams.append(name, value);
  return address.href;
}

/** Cancels a response. If that fails, it ends by itself: its request has failed already, which its caller reports. */
async function cancel(server: Provider, id: string): Promise<void> {
  const { headers, send } = server;
  const init = { method: "POST", headers, signal: AbortSignal.timeout(cancelTime), redirect: "manual" } as const;
  try {
    const response = await send(addressOf(server, id, [], "/cancel"), init);
    await response.body?.cancel();
  } catch {
    return; // see above
  }
}

/** Resolves after `ms` milliseconds, or rejects with the reason of `signal`. */
function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
