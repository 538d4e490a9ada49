/**
 * A run as a stream of server-sent events: one plain `ReadableStream` between the run and its client.
 *
 * @module
 */
import type { Numbered } from "../core/events.ts";
import type { Started } from "../core/run.ts";
import type { Sink } from "../stream/channel.ts";
import { frame, sse } from "../stream/sse.ts";

/** What becomes of a run whose client has gone. */
export type ClientGone = "stop" | "drain" | "detach";

/** How a run is streamed. */
export interface StreamOptions {
  /** Milliseconds of silence after which a comment is sent. */
  readonly heartbeat: number;
  readonly onClientGone: ClientGone;
}

/** The headers of every stream: kept by nobody, changed by nobody, held back by nobody. */
export const headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
} as const;

const leave: { readonly [key in ClientGone]: (run: Started) => void } = {
  stop: (run) => run.stop("client-gone"),
  drain: (run) => run.drain("client-gone"),
  detach: () => {},
};

/** Begins a run whose events leave as frames. That the client has gone is told by the stream being cancelled, and by nothing else. */
export function streamed(
  begin: (sink: Sink<Numbered>) => Started,
  { heartbeat, onClientGone }: StreamOptions,
): { readonly run: Started; readonly stream: ReadableStream<Uint8Array> } {
  const { sink, stream } = sse<Numbered>({
    frame: frameOf,
    heartbeat,
    onCancel: () => leave[onClientGone](run),
  });
  const run = begin(sink);
  return { run, stream };
}

/** The frame of an event. That of a text delta, which most of them are, is spelled out: it takes two thirds of the time. */
function frameOf({ event, id }: Numbered): string {
  if (event.type !== "text.delta") return frame(id, event);
  const { turn, part, text } = event;
  return `id: ${id}\ndata: {"type":"text.delta","turn":${turn},"part":${part},"text":${JSON.stringify(text)}}\n\n`;
}
