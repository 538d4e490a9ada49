/**
 * The event of a part of a response, for hooks that answer without the model.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { AnswerPart, CallPart } from "../../protocol/part.ts";
import { addedEvent } from "../steps/response.ts";

/** Creates the event of a part: a text is one delta. `at` contains the number of the turn, and that of the part in the response, from 0. */
export function partEvent(
  part: Exclude<AnswerPart, CallPart>,
  at: { readonly turn: number; readonly part: number },
): Event {
  switch (part.type) {
    case "text":
      return { type: "text.delta", ...at, text: part.text };
    case "reasoning":
      return { type: "reasoning.delta", ...at, text: part.text };
    default:
      return addedEvent(part, at);
  }
}
