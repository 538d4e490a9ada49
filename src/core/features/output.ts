/**
 * Structured output: a schema for the final answer. It implements the engine's port for answer formats.
 *
 * @module
 */
import type { ModelOptions } from "../../model/model.ts";
import { user } from "../../protocol/message.ts";
import type { AnswerFormat } from "../agent/definition.ts";
import { outputStreamOf } from "../agent/output_stream.ts";
import { expectJson } from "../lib/json_value.ts";
import { describeIssues, jsonSchemaOf, type Schema } from "../agent/schema.ts";

/** Creates the answer format of a schema. */
export function outputFormat(schema: Schema): AnswerFormat {
  const json = jsonSchemaOf(schema, "output");
  const task = outputInstructions(json);
  return {
    stream: outputStreamOf(schema),
    shape: (request) => ({
      ...request,
      instructions: `${request.instructions}\n\n${task}`.trim(),
      options: { ...request.options, output: json },
    }),
    async read(text) {
      const parsed = await parse(schema, text);
      if ("value" in parsed) {
        expectJson("Cannot use the structured answer", parsed.value);
        return { output: parsed.value };
      }
      return { retry: user(`Your answer does not match: ${parsed.wrong}. Answer again, with JSON alone.`, "output") };
    },
  };
}

/** Returns the instructions for an answer that matches a JSON Schema, such as `options.output` of a request. */
export function outputInstructions(schema: NonNullable<ModelOptions["output"]>): string {
  return `Give your final answer as JSON alone, matching this JSON Schema:\n${JSON.stringify(schema)}`;
}

/** Parses a final answer. It may be in a fenced code block. */
async function parse(
  schema: Schema,
  text: string,
): Promise<{ readonly value: unknown } | { readonly wrong: string }> {
  const [, fenced = text] = /^\s*```(?:json)?\n([\s\S]*?)\n```\s*$/.exec(text) ?? [];
  let json: unknown;
  try {
    json = JSON.parse(fenced);
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : "it is not JSON" };
  }
  const { issues, ...validated } = await schema["~standard"].validate(json);
  return issues ? { wrong: describeIssues(issues) } : validated as { readonly value: unknown }; // without issues there is a value
}
