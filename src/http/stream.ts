/**
 * Events as server-sent events: one plain `ReadableStream` between whoever has them and a client.
 *
 * @module
 */
import type { Numbered } from "../core/events.ts";
import type { Lines } from "../session/log.ts";
import type { Sink } from "../stream/channel.ts";
import { sse } from "../stream/sse.ts";

/** The headers of every stream: kept by nobody, changed by nobody, held back by nobody. */
export const headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Takes events, or the lines of them that are on record. */
export type Outlet = Sink<Numbered | Lines>;

/** How a response behaves. */
export interface OutletOptions {
  /** Milliseconds of silence after which a comment is sent. */
  readonly heartbeat: number;
  /** Called where the client has gone before the end: nothing else tells it. */
  readonly onCancel: () => void;
}

/** A stream of frames, and what it comes from. `frame` gives those of an item. */
export function outlet(
  options: OutletOptions & { readonly frame: (item: Numbered | Lines) => string },
): { readonly out: Outlet; readonly stream: ReadableStream<Uint8Array> } {
  const { sink: out, stream } = sse(options);
  return { out, stream };
}
