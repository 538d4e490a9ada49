/**
 * Reasoning in chat completions: the members that hold it, and the notes with which it is sent back.
 *
 * @module
 */
import type { UnknownObject } from "../../protocol/shape.ts";

/** The members in which servers stream reasoning as text. The first that has text is used, and its name is noted to send the reasoning back. */
export const reasoningFields = ["reasoning_content", "reasoning"] as const;

/** The members in which gateways stream reasoning as a list, with its signatures. It is sent back unchanged. The first is that of OpenRouter, the second that of LiteLLM. */
export const reasoningLists = ["reasoning_details", "thinking_blocks"] as const;

/** The type of a part that holds reasoning in content that is a list. It is noted as the field of the reasoning. */
export const thinking = "thinking";

/** The members of an item that hold its text, and continue from chunk to chunk. */
const texts = ["text", "summary", "thinking"] as const;

/** Returns the text of an item; an empty string for one that is encrypted. */
function itemText(item: UnknownObject): string {
  return texts.map((name) => item[name]).find((text): text is string => typeof text === "string") ?? "";
}

/** Adds an item of a chunk to the items before it; a piece of the last item continues it. Returns the text that it adds. */
export function addItem(items: UnknownObject[], item: UnknownObject): string {
  const last = items.at(-1);
  const text = itemText(item);
  if (!last || !continues(last, item)) {
    items.push(item);
    return text;
  }
  const isRepeated = Boolean(item.signature) && text === itemText(last); // a chunk with the signature may repeat the whole text
  const joined: Record<string, unknown> = { ...last };
  for (const [name, value] of Object.entries(item)) {
    if ((value ?? "") === "") continue;
    const isText = texts.some((text) => text === name);
    joined[name] = isText && !isRepeated ? `${last[name] ?? ""}${value}` : value;
  }
  items[items.length - 1] = joined;
  return isRepeated ? "" : text;
}

/** Whether `item` is a piece of `last`: of its type, index and id, and not after its signature. Encrypted items have no pieces. */
function continues(last: UnknownObject, item: UnknownObject): boolean {
  const same = ["type", "index", "id"].every((name) => (item[name] ?? last[name]) === last[name]);
  return same && item.data === undefined && !(last.signature && itemText(item) !== "");
}
