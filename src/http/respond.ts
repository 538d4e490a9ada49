/**
 * Step 7 of the request path: the response, from a run that has been launched or from its record, in the format of the route.
 *
 * @module
 */
import type { Context } from "hono";
import type { NumberedEvent } from "../core/events.ts";
import { traceIdOf } from "../core/lib/traceparent.ts";
import type { JournalLines, JournalPage } from "../core/journal.ts";
import { nullSink } from "../core/start.ts";
import { notFound, reportError } from "./error_response.ts";
import type { RequestScope } from "./operation.ts";
import { type Event, isLastEvent } from "../protocol/event.ts";
import { noUsage } from "../protocol/message.ts";
import { emittedForm } from "../protocol/question.ts";
import { RecordError } from "../session/record/records.ts";
import type { EventCursor, LiveRun, RunAddress } from "../session/record/run_host.ts";
import { type Sink, SinkFilter } from "../stream/channel.ts";
import { endOfLines, eventFrames, frame, sse } from "../stream/sse.ts";
import type { JsonResponse, Reply } from "../wire/wire.ts";

// Response formats: how a response encodes the events of a run, natively or for a wire, and the response that names the run instead.

/** The headers of an event stream, which no cache may store and no proxy may change or buffer. */
const headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Receives the events of a response, or their lines from a record. */
export type EventOutput = Sink<NumberedEvent | JournalLines>;

/** Options of a streamed response. */
interface OutputOptions {
  /** Milliseconds of silence after which a comment is sent. */
  readonly heartbeat: number;
  /** Called if the client leaves before the end of the response. */
  readonly onCancel: () => void;
  /** Called once no more events are sent. */
  readonly onEnd: () => void;
}

/** Makes the response with the events of a run. */
export interface Responder {
  readonly respond: () => Response | Promise<Response>;
}

/** A run that has begun, and the response that receives its events. */
export interface Launched extends Responder {
  readonly run: LiveRun;
}

/** Creates the output for the events of a run, and the response that sends them. */
export type ResponseFormat = (c: Context, options: OutputOptions) => Responder & { readonly out: EventOutput };

/** Sends each event as one server-sent event with its number. */
export const nativeFormat: ResponseFormat = (c, options) => {
  const { sink: out, stream } = sse({ ...options, frame: nativeEncoder() });
  return { out, respond: () => c.body(stream, 200, headers) };
};

/** Returns the encoder of one native response. It is not a closure of the format, which would keep the request as long as the stream. */
function nativeEncoder(): (item: NumberedEvent | JournalLines) => string {
  const encode = eventFrames();
  return (item) =>
    "event" in item
      ? item.line === undefined ? encode(item.event, item.id) : frame(item.id, item.line)
      : item.lines.map((line, index) => frame(item.first + index, line)).join("");
}

/** Returns the format of a wire's reply. */
export function wireFormat(reply: Reply): ResponseFormat {
  if (reply.type === "json") return jsonFormat(reply);
  return (c, options) => {
    const { out, stream } = wireStream(reply, options);
    const respond = () => {
      const response = c.body(stream, 200, { ...headers, ...reply.headers });
      return reply.respond?.(response, c.req.raw.signal) ?? response;
    };
    return { out, respond };
  };
}

/** Creates the stream of a wire's response. Like `nativeEncoder`, it is outside of the format, so that the stream does not keep the request. */
function wireStream(reply: Extract<Reply, { readonly type: "stream" }>, options: OutputOptions) {
  const { encode, end } = closingEncoder(reply.encoder());
  const { sink, stream } = sse({
    ...options,
    ...(reply.comments === false && { heartbeat: Infinity }),
    frame: (item: NumberedEvent | JournalLines) => encodeEach(item, encode).join(""),
  });
  const out = new SinkFilter(sink, (item: NumberedEvent | JournalLines) => sink.write(item), () => {
    const last = end();
    if (last) sink.write(last);
    sink.close();
  });
  return { out, stream };
}

/** Sends one JSON body when the run is over. The request's signal aborts if the client leaves before. */
function jsonFormat({ collector, headers }: Extract<Reply, { readonly type: "json" }>): ResponseFormat {
  return (c, { onCancel, onEnd }) => {
    const { encode: collect, end } = closingEncoder(collector());
    const { signal } = c.req.raw;
    const { promise: over, resolve: close } = Promise.withResolvers<void>();
    let response: JsonResponse | undefined;
    const out: EventOutput = {
      ...nullSink,
      write(item) {
        for (const complete of encodeEach(item, collect)) response ??= complete;
      },
      close() {
        const last = end();
        if (last) out.write(last);
        onEnd();
        close();
      },
    };
    async function respond(): Promise<Response> {
      signal.addEventListener("abort", onCancel);
      if (signal.aborted) onCancel();
      await over;
      signal.removeEventListener("abort", onCancel);
      if (!response) throw new Error("Cannot respond: the run has no end");
      const { body, status, retryAfter } = response;
      const wait = retryAfter !== undefined && { "retry-after": String(Math.ceil(retryAfter / 1000)) };
      return c.json(body, status, { ...headers, ...wait });
    }
    return { out, respond };
  };
}

/**
 * Adds an end to a response whose run has none: the run is handed over to another process, or its store fails. The clients of wires do not reconnect by
 * themselves. `end` returns the event to encode last; undefined if the response has its end.
 */
function closingEncoder<T>(encode: (event: Event, id: number) => T) {
  let lastId: number | undefined;
  return {
    encode(event: Event, id: number): T {
      lastId = isLastEvent(event) ? undefined : id;
      return encode(event, id);
    },
    end: (): NumberedEvent | undefined => lastId === undefined ? undefined : { id: lastId + 1, event: unavailable },
  };
}

const unavailable: Event = {
  type: "run.failed",
  error: "interrupted",
  message: "The server stopped sending the events of the run, which may continue on another server.",
  code: "unavailable",
  retryAfter: 1_000,
  usage: noUsage,
};

/** Encodes each event of an item. */
function encodeEach<T>(item: NumberedEvent | JournalLines, encode: (event: Event, id: number) => T): T[] {
  if ("event" in item) return [encode(item.event, item.id)];
  return item.lines.map((line, index) => encode(emittedForm(JSON.parse(line)), item.first + index));
}

/** True if the client of a native route does not wait for the run: `Prefer: respond-async` of RFC 7240. */
export function prefersAsync(c: Context, format: ResponseFormat): boolean {
  return format === nativeFormat && /(^|[,;])\s*respond-async\s*([,;]|$)/i.test(c.req.header("prefer") ?? "");
}

/** Responds with the address of a run, where its events are. */
export function accepted(c: Context, { run, session = "" }: RunAddress): Response {
  const { pathname } = new URL(c.req.url); // encoded, unlike `c.req.path`
  const base = pathname.replace(/\/(runs|sessions\/[^/]+\/[^/]+)$/, "");
  return c.json({ run, session }, 202, {
    "location": `${base}/runs/${run}`,
    "preference-applied": "respond-async",
  });
}

// Responses from a record, for requests that launch no run.

/** Responds with the events of a run that the same request has begun before. A client that prefers not to wait receives the address of the run instead. */
export async function respondJoined(
  scope: RequestScope,
  cursor: EventCursor,
  format: ResponseFormat,
): Promise<Response> {
  if (prefersAsync(scope.c, format)) return accepted(scope.c, cursor);
  try {
    return await respondFromRecord(scope, cursor, format);
  } catch (error) {
    if (!(error instanceof RecordError) || error.code !== "unknown") throw error;
    throw new RecordError("Cannot repeat the request: the record of its run has been deleted", "forgotten");
  }
}

/** Responds with the recorded events after a cursor, and with those that follow. Responds with 204 if the run is over and no event is left. */
export async function respondFromRecord(
  { c, server: { options: { heartbeat, onError }, runs: { records }, streams, admissions }, client }: RequestScope,
  cursor: EventCursor,
  format: ResponseFormat,
): Promise<Response> {
  admissions.expectStream();
  if (!records) throw notFound(`follow run "${cursor.run}"`);
  const leaving = new AbortController();
  const pages = await records.follow(cursor, client, leaving.signal);
  if (!pages) return c.body(null, 204);
  if (c.req.method === "HEAD") {
    leaving.abort(); // nothing reads the pages
    return c.body(null, 200, headers);
  }
  const { out, respond } = format(c, { heartbeat, onCancel: () => leaving.abort(), onEnd: streams.follow() });
  const place = { ...cursor, owner: client.owner, trace: traceIdOf(c.req.header("traceparent")) }; // the stream must not keep the request
  // it never rejects
  send(pages, out, (error) => reportError(onError, error, place));
  return await respond();
}

/** The number of characters of a part. */
const partLength = 65_536;

/** Yields the lines of a page in parts, since a client that does not read would otherwise hold a whole page in each form on the way to it. */
function* partsOf({ first, lines }: JournalLines): Iterable<JournalLines> {
  for (let start = 0, end = 0; start < lines.length; start = end) {
    end = endOfLines(lines, start, partLength);
    yield { first: first + start, lines: lines.slice(start, end) };
  }
}

async function send(
  pages: AsyncIterable<JournalPage>,
  out: EventOutput,
  onError: (error: unknown) => void,
): Promise<void> {
  try {
    for await (const page of pages) {
      for (const part of partsOf(page)) {
        out.write(part);
        await out.full;
      }
    }
  } catch (error) {
    onError(error);
  } finally {
    out.close();
  }
}
