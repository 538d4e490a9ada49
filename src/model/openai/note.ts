/**
 * Notes: what is kept with a model's thought because it has to be sent back. No other model is sent it.
 *
 * @module
 */
import type { AnswerPart, Json } from "../../protocol/message.ts";
import { isFields } from "../fields.ts";

/** The fields that thought comes in, by the server. */
export const thoughtFields = ["reasoning_content", "reasoning"] as const;

/** What is noted with a part. */
export interface Note {
  /** The field that its thought came in. */
  readonly field?: (typeof thoughtFields)[number] | undefined;
  /** What came with the call after it: Gemini wants its signature back. */
  readonly call?: unknown;
}

/** A note of `model`, as it is kept. */
export function kept(model: string, note: { readonly field: string } | { readonly call: Json }): Json {
  return { model, ...note };
}

/** What `model` noted with a part. */
export function noteOf(part: AnswerPart, model: string): Note {
  const meta = part.type === "reasoning" ? part.meta : undefined;
  if (!isFields(meta) || meta.model !== model) return {};
  return { field: thoughtFields.find((field) => field === meta.field), call: meta.call };
}
