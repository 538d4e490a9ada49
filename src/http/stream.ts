/**
 * Events as server-sent events: one plain `ReadableStream` between whoever has them and a client.
 *
 * @module
 */
import type { Numbered } from "../core/events.ts";
import type { Event } from "../protocol/event.ts";
import type { Sink } from "../stream/channel.ts";
import { sse } from "../stream/sse.ts";

/** The headers of every stream: kept by nobody, changed by nobody, held back by nobody. */
export const headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Takes events, or frames that are written already. */
export type Outlet = Sink<Numbered | string>;

/** How a stream behaves. */
export interface OutletOptions {
  /** Milliseconds of silence after which a comment is sent. */
  readonly heartbeat: number;
  /** Called where the client has gone before the end: the stream is cancelled then, and nothing else tells it. */
  readonly onCancel: () => void;
}

/** A stream, and what it comes from. */
export function outlet(
  { heartbeat, onCancel }: OutletOptions,
): { readonly out: Outlet; readonly stream: ReadableStream<Uint8Array> } {
  const { sink: out, stream } = sse<Numbered | string>({
    frame: (item) => typeof item === "string" ? item : frameOf(item.id, lineOf(item.event)),
    heartbeat,
    onCancel,
  });
  return { out, stream };
}

/** An event as JSON, on one line. A text delta, which most of them are, is spelled out: it takes two thirds of the time. */
export function lineOf(event: Event): string {
  if (event.type !== "text.delta") return JSON.stringify(event);
  const { turn, part, text } = event;
  return `{"type":"text.delta","turn":${turn},"part":${part},"text":${JSON.stringify(text)}}`;
}

/** The frames of events of which the first has the number `first`. */
export function framesOf(first: number, lines: readonly string[]): string {
  return lines.map((line, index) => frameOf(first + index, line)).join("");
}

function frameOf(id: number, line: string): string {
  return `id: ${id}\ndata: ${line}\n\n`;
}
