/**
 * Items that the client sends back, as parts for the provider that made them.
 *
 * @module
 */
import { builtInEvents, questionCall } from "../../../model/openai_responses/built_in_tools.ts";
import type { AnswerPart, Json } from "../../../protocol/part.ts";
import { stringOrEmpty } from "../../../protocol/unknown_json.ts";
import { decodeCallId } from "../call_id.ts";

type Item = Readonly<Record<string, Json>>;

/** The ids of OpenAI's items. Items of this wire have others, because OpenAI rejects them. */
const ownId = /^(ws|fs|ci|mcp|mcpl|mcpr|ig|rs)_/;

/**
 * Returns the parts of an item other than a message, a call or a result. The note of a part keeps the item, which `openaiResponses()` sends again; another model
 * receives a call and its result as text.
 */
export function itemParts(item: Item): readonly AnswerPart[] {
  const id = stringOrEmpty(item.id);
  const note = { type: "reasoning", text: "", meta: { item } } as const;
  if (item.type === "mcp_approval_request") {
    return decodeCallId(id) ? [] : [note, { type: "call", ...questionCall(item) }]; // this server knows its own questions
  }
  const thought = { ...note, text: textsOf(item.content) || textsOf(item.summary) };
  const parts = item.type === "reasoning" ? [thought] : builtInEvents({}, item)?.map(({ part }) => part);
  if (!parts) return [note];
  return item.id === undefined || ownId.test(id) ? parts : parts.map(({ meta: _, ...part }) => part);
}

function textsOf(parts: Json | undefined): string {
  return Array.isArray(parts) ? parts.map((part) => stringOrEmpty(Object(part).text)).join("") : "";
}
