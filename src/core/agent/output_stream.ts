/**
 * The port of streamed structured output, which `streamed()` of `@jizai/jizai/output` implements.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";

/** Derives the changes of a structured answer from the events of a run, and collects them. */
export interface OutputStream {
  /** Creates a function that returns the event which follows an event of the run, if there is one. */
  readonly derive: () => (event: Event) => Event | undefined;
  /** Creates the collector of one run: `add` receives every event, and `values` are the partial values until the run ends or pauses. */
  readonly collect: () => { readonly add: (event: Event) => void; readonly values: AsyncIterable<unknown> };
}

/** A value of which any part may still be missing. */
export type DeepPartial<T> = T extends readonly (infer I)[] ? readonly DeepPartial<I>[]
  : T extends object ? { readonly [K in keyof T]?: DeepPartial<T[K]> }
  : T;

/** Returns the stream of a schema, if it has one. */
export function outputStreamOf(schema: object): OutputStream | undefined {
  return "~stream" in schema ? schema["~stream"] as OutputStream : undefined; // only streamed() sets it
}
