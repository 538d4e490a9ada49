/**
 * What may be answered to a question: for whoever shows it to a person.
 *
 * @module
 */
import type { Question, Suggestion } from "../protocol/question.ts";

type JsonSchema = NonNullable<Question["schema"]>;

const string = { type: "string" };

/** A reply, in the run's place or in that of a tool. */
export const replySchema: JsonSchema = answer("reply", { text: string }, ["text"]);

/** What may be answered about a call of a tool whose input has the schema `input`. */
export function answerSchema(input: JsonSchema = {}): JsonSchema {
  return {
    oneOf: [
      answer("approve", { input, always: { enum: ["tool", "input"] } }),
      answer("deny", { reason: string }),
      replySchema,
    ],
  };
}

/** What is suggested about any call. */
export const suggestions: readonly Suggestion[] = [
  { type: "approve" },
  { type: "approve", always: "tool" },
  { type: "deny" },
];

function answer(type: string, properties: JsonSchema, required: readonly string[] = []): JsonSchema {
  return { type: "object", properties: { type: { const: type }, ...properties }, required: ["type", ...required] };
}
