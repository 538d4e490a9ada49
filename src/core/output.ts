/**
 * Structured output: the schema of a final answer, how the model is told of it, and how its answer is read.
 *
 * @module
 */
import { describeIssues, jsonSchemaOf, type Schema } from "./schema.ts";

/** A schema for the final answer, and how the model is told of it. */
export interface Output {
  readonly validate: Schema["~standard"]["validate"];
  readonly schema: { readonly [key: string]: unknown };
  readonly instructions: string;
}

/** Prepares `output` of an agent. */
export function outputOf(schema: Schema): Output {
  const json = jsonSchemaOf(schema, "output");
  return {
    validate: schema["~standard"].validate,
    schema: json,
    instructions: `Give your final answer as JSON alone, matching this JSON Schema:\n${JSON.stringify(json)}`,
  };
}

/** Reads a final answer: its value, or what is wrong with it. */
export async function parseOutput(
  { validate }: Output,
  text: string,
): Promise<{ readonly value: unknown } | { readonly wrong: string }> {
  const [, fenced = text] = /^\s*```(?:json)?\n([\s\S]*?)\n```\s*$/.exec(text) ?? [];
  let json: unknown;
  try {
    json = JSON.parse(fenced);
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : "it is not JSON" };
  }
  const validated = await validate(json);
  return validated.issues ? { wrong: describeIssues(validated.issues) } : { value: validated.value };
}
