/**
 * Streamed structured output: the answer's value, while the model writes it.
 *
 * @module
 */
import { type Event, isLastEvent } from "../../../protocol/event.ts";
import type { OutputStream } from "../../agent/output_stream.ts";
import { type Schema, standardOf } from "../../agent/schema.ts";
import { OutputParser } from "./parser.ts";
import { PartialOutput } from "./value.ts";

export type { OutputChange, OutputPath } from "../../../protocol/part.ts";
export type { DeepPartial, OutputStream } from "../../agent/output_stream.ts";
export { PartialOutput } from "./value.ts";

/** A schema whose values are streamed. */
export interface StreamedSchema<S extends Schema> {
  /** The schema. */
  readonly "~standard": S["~standard"];
  /** The stream of values, for the engine. */
  readonly "~stream": OutputStream;
}

/**
 * Streams the structured output of an agent: `output.delta` events carry the changes of the partial value, and `run.output` iterates over the partial values.
 * They are derived from the text that clients receive, after every hook, and they are not validated. Only the final output is.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { streamed } from "@jizai/jizai/output";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const model = scripted({ text: ['{"city":"Kyo', 'to","sunny":tr', "ue}"] });
 * const forecast = agent({ model, output: streamed(z.object({ city: z.string(), sunny: z.boolean() })) });
 *
 * const run = forecast.run("Weather in Kyoto?");
 * for await (const partial of run.output) show(partial.city);
 * assertEquals((await run.result).output, { city: "Kyoto", sunny: true });
 *
 * function show(_city?: string) {} // draws your page
 * ```
 */
export function streamed<S extends Schema>(schema: S): StreamedSchema<S> {
  return { "~standard": standardOf(schema), "~stream": { derive: deriveChanges, collect: collectValues } };
}

/**
 * Creates a function that returns the `output.delta` event which follows an event, if there is one. A turn that is asked again begins a new value, and so does
 * a text that replaces the streamed one.
 */
function deriveChanges(): (event: Event) => Event | undefined {
  let parser = new OutputParser();
  return (event) => {
    if (event.type.startsWith("model.")) parser = new OutputParser();
    if (event.type !== "text.delta" && event.type !== "model.finished") return undefined;
    const { turn, text = "" } = event;
    const changes = parser.add(text);
    return changes.length > 0 ? { type: "output.delta", turn, changes } : undefined;
  };
}

/** Collects the partial values of one run. */
function collectValues(): ReturnType<OutputStream["collect"]> {
  const output = new PartialOutput();
  let changed = Promise.withResolvers<void>();
  let version = 0;
  let over = false;

  function add(event: Event): void {
    if (event.type === "output.delta") {
      output.add(event.changes);
      version++;
    } else if (isLastEvent(event)) over = true;
    else return;
    changed.resolve();
    changed = Promise.withResolvers();
  }

  async function* values(): AsyncGenerator<unknown> {
    for (let seen = 0;;) {
      if (seen < version) {
        seen = version;
        yield output.value;
      } else if (over) return;
      else await changed.promise;
    }
  }
  return { add, values: { [Symbol.asyncIterator]: values } };
}
