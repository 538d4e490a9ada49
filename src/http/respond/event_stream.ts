/**
 * Event streams: their headers, and what they receive.
 *
 * @module
 */
import type { NumberedEvent } from "../../core/run/events.ts";
import type { Lines } from "../../session/log.ts";
import type { Sink } from "../../stream/channel.ts";

/** The headers of an event stream, which no cache may store and no proxy may change or buffer. */
export const headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Receives the events of a response, or their lines from a log. */
export type EventOutput = Sink<NumberedEvent | Lines>;

/** Options of a streamed response. */
export interface OutputOptions {
  /** Milliseconds of silence after which a comment is sent. */
  readonly heartbeat: number;
  /** Called if the client leaves before the end of the response. */
  readonly onCancel: () => void;
}
