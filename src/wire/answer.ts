/**
 * What a person may answer, as it comes from outside: the fields of each kind.
 *
 * @module
 */
import type { Suggestion } from "../protocol/question.ts";
import { json, type Kinds, optional, text, word } from "./shape.ts";

/** The fields of each kind of answer, beside the call that it is about. */
export const answers: Kinds<"type", Suggestion> = {
  approve: { input: optional(json), always: optional(word("tool", "input")) },
  deny: { reason: optional(text) },
  reply: { text },
};
