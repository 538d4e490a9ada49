/**
 * Structured output: a schema for the final answer. It implements the engine's port for answer formats.
 *
 * @module
 */
import type { ModelOptions } from "../../model/model.ts";
import { user } from "../../protocol/message.ts";
import type { AnswerFormat } from "../agent/definition.ts";
import { outputStreamOf } from "../agent/output_stream.ts";
import { reasonOf } from "../lib/cancellation.ts";
import { expectJson } from "../lib/json_value.ts";
import { describeIssues, jsonSchemaOf, type Schema } from "../agent/schema.ts";

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
