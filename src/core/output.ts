/**
 * Structured output: a schema for the final answer. It implements the engine's port for answer formats.
 *
 * @module
 */
import type { AnswerFormat } from "./definition.ts";
import { reasonOf } from "./lib/cancellation.ts";
import { expectJson } from "./lib/json.ts";
import { describeIssues, jsonSchemaOf, type Schema } from "./tool.ts";
import type { ModelOptions } from "../model/model.ts";
import type { Event } from "../protocol/event.ts";
import { user } from "../protocol/message.ts";

// The port of streamed structured output, which `streamed()` of `@jizai/jizai/output` implements.

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
function outputStreamOf(schema: object): OutputStream | undefined {
  return "~stream" in schema ? schema["~stream"] as OutputStream : undefined; // only streamed() sets it
}

// The format of an answer, made of a schema.

/** Creates the answer format of a schema. */
export function outputFormat(schema: Schema): AnswerFormat {
  const json = jsonSchemaOf(schema, "output");
  const task = outputInstructions(json);
  return {
    schema: json,
    stream: outputStreamOf(schema),
    shape: (request) => ({
      ...request,
      instructions: `${request.instructions}\n\n${task}`.trim(),
      options: { ...request.options, output: json },
    }),
    async read(text, finish) {
      const retry = (wrong: string) => ({
        retry: user(`Your answer does not match: ${wrong}. Answer again, with JSON alone.`, "output"),
      });
      const [, fenced = text] = /^\s*```(?:json)?\n([\s\S]*?)\n```\s*$/.exec(text) ?? []; // in a block of code
      let json: unknown;
      try {
        json = JSON.parse(fenced);
      } catch (error) {
        return retry(finish === "length" ? "it reached the output limit, so write less" : reasonOf(error));
      }
      const validated = await schema["~standard"].validate(json);
      if (validated.issues) return retry(describeIssues(validated.issues));
      expectJson("Cannot use the structured answer", validated.value);
      return { output: validated.value };
    },
  };
}

/** Returns the instructions for an answer that matches a JSON Schema, such as `options.output` of a request. */
export function outputInstructions(schema: NonNullable<ModelOptions["output"]>): string {
  return `Give your final answer as JSON alone, matching this JSON Schema:\n${JSON.stringify(schema)}`;
}
