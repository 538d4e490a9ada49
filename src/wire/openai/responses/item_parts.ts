/**
 * Items that the client sends back, as parts.
 *
 * @module
 */
import { builtInEvents } from "../../../model/openai_responses/built_in_tools.ts";
import type { AnswerPart, Json } from "../../../protocol/part.ts";
import { decodeCallId } from "../call_id.ts";

type Item = Readonly<Record<string, Json>>;

/**
 * Returns the parts of an item other than a message, a call or a result. The note of a part is the item, of which the server leaves out all that the parts do
 * not say: it sends no items of a client to a provider.
 */
export function itemParts(item: Item): readonly AnswerPart[] {
  if (item.type === "mcp_approval_request" && decodeCallId(`${item.id}`)) return []; // this server knows its own questions
  const note = { type: "reasoning", text: "", meta: { item } } as const;
  if (item.type === "reasoning") return [{ ...note, text: textsOf(item.content) || textsOf(item.summary) }];
  return builtInEvents({}, item)?.map(({ part }) => part) ?? [note];
}

function textsOf(parts: Json | undefined): string {
  const texts = (Array.isArray(parts) ? parts : []).map((part) => Object(part).text);
  return texts.filter((text) => typeof text === "string").join("");
}
