/**
 * Provider notes: the `meta` of reasoning parts, which is stored and sent back to the model that produced it, and to no other.
 *
 * @module
 */
import type { AnswerPart, Json } from "../protocol/message.ts";
import { isObject, type UnknownObject } from "../protocol/unknown_json.ts";
import type { ModelEvent } from "./model.ts";

/** Creates an event that ends the reasoning part, or adds an empty one, with a note of `model`. The note is data from a parsed frame. */
export function noteEvent(model: string, note: UnknownObject): ModelEvent {
  const meta = { model, ...note } as Json; // parsed JSON
  return { type: "reasoning", text: "", meta };
}

/** Creates an event of a source. Fields that are not texts are left out. */
export function sourceEvent(fields: { readonly [key in "url" | "title" | "text"]?: unknown }): ModelEvent {
  const texts = Object.entries(fields).filter(([, value]) => typeof value === "string" && value !== "");
  return { type: "part", part: { type: "source", ...Object.fromEntries(texts) } };
}

/** Reads the note of a part if it came from `model`. */
export function readNote(part: AnswerPart, model: string): UnknownObject {
  const meta = part.type === "reasoning" || part.type === "media" ? part.meta : undefined;
  return isObject(meta) && meta.model === model ? meta : {};
}
