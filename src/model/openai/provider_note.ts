/**
 * Provider notes: the `meta` of reasoning parts, which is stored and sent back to the model that produced it, and to no other.
 *
 * @module
 */
import type { AnswerPart, Json } from "../../protocol/message.ts";
import { isObject } from "../../protocol/unknown_json.ts";

/** The fields in which servers stream reasoning. */
export const reasoningFields = ["reasoning_content", "reasoning"] as const;

/** The note of a reasoning part. */
export interface ProviderNote {
  /** The field in which the server streamed the reasoning. */
  readonly field?: (typeof reasoningFields)[number] | undefined;
  /** Extra content of the call after it, such as Gemini's thought signature. */
  readonly call?: unknown;
}

/** Creates the note of a part from `model`. */
export function noteFrom(model: string, note: { readonly field: string } | { readonly call: Json }): Json {
  return { model, ...note };
}

/** Reads the note of a part if it came from `model`. */
export function readNote(part: AnswerPart, model: string): ProviderNote {
  const meta = part.type === "reasoning" ? part.meta : undefined;
  if (!isObject(meta) || meta.model !== model) return {};
  return { field: reasoningFields.find((field) => field === meta.field), call: meta.call };
}
