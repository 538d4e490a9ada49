/**
 * Shapes of a person's answers, and the ids of the questions that they answer.
 *
 * @module
 */
import type { Suggestion } from "../protocol/question.ts";
import { json, oneOf, optional, string, type Variants } from "../protocol/shape.ts";
import type { Pause } from "./wire.ts";

/** Returns the id of a pause. */
export function pauseId({ run, pausedAt }: Pause): string {
  return `${run}@${pausedAt}`;
}

/** Returns the id of a question. An answer to another pause, or to another run with the same calls, has another id. */
export function questionId(callId = "", pause: Pause): string {
  return `${callId}@${pauseId(pause)}`;
}

/** Returns the fields of each kind of answer, without the id of the call that it answers. */
export function answerFields(): Variants<"type", Suggestion> {
  return {
    approve: { input: optional(json), always: optional(oneOf("tool", "input")) },
    deny: { reason: optional(string) },
    reply: { text: string },
  };
}
