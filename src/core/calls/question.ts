/**
 * JSON Schemas of a person's answers, for clients that show questions.
 *
 * @module
 */
import type { Question, Suggestion } from "../../protocol/question.ts";

type JsonSchema = NonNullable<Question["schema"]>;

const string = { type: "string" };

/** The schema of a reply. */
export const replySchema: JsonSchema = /* @__PURE__ */ answer("reply", { text: string }, ["text"]);

/** Returns the schema of the answers about a call, given the schema of its input. */
export function answerSchema(input: JsonSchema = {}): JsonSchema {
  return {
    oneOf: [
      answer("approve", { input, always: { enum: ["tool", "input"] } }),
      answer("deny", { reason: string }),
      replySchema,
    ],
  };
}

/** The suggested answers about a call. */
export const suggestions: readonly Suggestion[] = [
  { type: "approve" },
  { type: "approve", always: "tool" },
  { type: "deny" },
];

function answer(type: string, properties: JsonSchema, required: readonly string[] = []): JsonSchema {
  return { type: "object", properties: { type: { const: type }, ...properties }, required: ["type", ...required] };
}
