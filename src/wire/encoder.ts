/**
 * Encoders as tables of handlers, one for each type of event.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import type { EventEncoder } from "./wire.ts";

/** The event of this type. */
export type EventOf<T extends Event["type"]> = Extract<Event, { readonly type: T }>;

/** Encodes the events of some types. */
export type EventHandlers = { readonly [T in Event["type"]]?: (event: EventOf<T>, id: number) => string };

/** Creates an encoder from a table of handlers. `otherwise` encodes an event without a handler. Default: it has no frame. */
export function tableEncoder(handlers: EventHandlers, otherwise: EventEncoder = () => ""): EventEncoder {
  const table = handlers as { readonly [type: string]: EventEncoder | undefined }; // each takes the events of its type
  return (event, id) => (table[event.type] ?? otherwise)(event, id);
}
