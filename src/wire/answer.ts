/**
 * Shapes of a person's answers.
 *
 * @module
 */
import type { Suggestion } from "../protocol/question.ts";
import { json, oneOf, optional, string, type Variants } from "../protocol/shape.ts";

/** Returns the fields of each kind of answer, without the id of the call that it answers. */
export function answerFields(): Variants<"type", Suggestion> {
  return {
    approve: { input: optional(json), always: optional(oneOf("tool", "input")) },
    deny: { reason: optional(string) },
    reply: { text: string },
  };
}
