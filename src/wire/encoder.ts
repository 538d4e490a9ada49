/**
 * Encoders as tables of handlers, one for each type of event.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";

/** The event of this type. */
export type EventOf<T extends Event["type"]> = Extract<Event, { readonly type: T }>;

/** Encodes the events of some types. A handler also receives the event's number, or another value that its caller passes with each event. */
export type EventHandlers<V = number> = { readonly [T in Event["type"]]?: (event: EventOf<T>, value: V) => string };

/** Encodes an event. */
type Encode<V> = (event: Event, value: V) => string;

/** Creates an encoder from a table of handlers. `otherwise` encodes an event without a handler. Default: it has no frame. */
export function tableEncoder<V = number>(handlers: EventHandlers<V>, otherwise: Encode<V> = () => ""): Encode<V> {
  const table = handlers as { readonly [type: string]: Encode<V> | undefined }; // each takes the events of its type
  return (event, value) => (table[event.type] ?? otherwise)(event, value);
}
