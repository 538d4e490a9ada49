/**
 * Responses that tell of a run while it goes on: what they are fed with, and how they behave.
 *
 * @module
 */
import type { NumberedEvent } from "../core/events.ts";
import type { Lines } from "../session/log.ts";
import type { Sink } from "../stream/channel.ts";

/** The headers of every stream: kept by nobody, changed by nobody, held back by nobody. */
export const headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Takes events, or the lines of them that are on record. */
export type Outlet = Sink<NumberedEvent | Lines>;

/** How a response behaves. */
export interface OutletOptions {
  /** Milliseconds of silence after which a comment is sent. */
  readonly heartbeat: number;
  /** Called where the client has gone before the end: nothing else tells it. */
  readonly onCancel: () => void;
}
