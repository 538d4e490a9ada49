/**
 * Structured output: the final answer is checked against a schema, and the model is asked again where it does not match.
 *
 * @module
 */
import { type AssistantMessage, textOf, user } from "../protocol/message.ts";
import type { Live } from "./live.ts";
import type { Answer } from "./points.ts";
import { complaint, jsonSchemaOf, type Schema } from "./schema.ts";

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

/** The final answer; nothing where the model is to be asked again. */
export async function checkOutput(live: Live, message: AssistantMessage): Promise<Answer | undefined> {
  const text = textOf(message);
  const { output } = live.blueprint;
  if (!output) return { status: "done", text };
  const checked = await parse(output, text);
  if ("value" in checked) return { status: "done", text, output: checked.value };
  if (live.used.outputs >= live.limits.outputs) return { status: "limit", text, reason: "outputs" };
  live.used.outputs++;
  live.transcript.push(user(`Your answer does not match: ${checked.wrong}. Answer again, with JSON alone.`, "output"));
  return undefined;
}

async function parse(
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
  return validated.issues ? { wrong: complaint(validated.issues) } : { value: validated.value };
}
