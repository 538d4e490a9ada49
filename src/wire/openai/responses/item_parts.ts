/**
 * Items that the client sends back, as parts for the provider that made them.
 *
 * @module
 */
import { builtInEvents } from "../../../model/openai_responses/built_in_tools.ts";
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
  const { type, id, result } = item;
  if (type === "mcp_approval_request" && decodeCallId(stringOrEmpty(id))) return []; // a question of this server, which knows it
  const isKnown = id === undefined || ownId.test(stringOrEmpty(id));
  if (type === "reasoning") {
    return [{ type, text: textsOf(item.content) || textsOf(item.summary), ...(isKnown && { meta: { item } }) }];
  }
  if (type === "image_generation_call" && typeof result === "string") {
    const { result: _, ...rest } = item;
    const mediaType = `image/${stringOrEmpty(item.output_format) || "png"}`;
    return [{ type: "media", mediaType, data: result, ...(isKnown && { meta: { item: rest } }) }];
  }
  const events = builtInEvents({}, item) ?? [{ type: "reasoning", text: "", meta: { item } }];
  return events.flatMap((event): readonly AnswerPart[] => {
    switch (event.type) {
      case "part": {
        if (isKnown || !("meta" in event.part)) return [event.part];
        const { meta: _, ...part } = event.part;
        return [part];
      }
      case "reasoning":
        return [event];
      case "call.end": // of a question
        return [{ type: "call", id: event.id, name: stringOrEmpty(item.server_label), input: event.input }];
      default:
        return [];
    }
  });
}

function textsOf(parts: Json | undefined): string {
  return Array.isArray(parts) ? parts.map((part) => stringOrEmpty(Object(part).text)).join("") : "";
}
