/**
 * Token estimates: four bytes of UTF-8 per token, without a tokenizer.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart } from "../../protocol/part.ts";

/** Bytes that a provider adds around each part. */
const overhead = 28;

/** Bytes that an image or a file counts as. Providers count its content, not its encoding. */
const mediaSize = 6_400;

/** A cache of the sizes of messages, which never change: a transcript is measured before each turn. */
const sizes = /* @__PURE__ */ new WeakMap<Message, number>();

/** Returns the estimated number of tokens of `messages`. */
export function estimateTokens(messages: readonly Message[]): number {
  let bytes = 0;
  for (const message of messages) {
    let size = sizes.get(message);
    if (size === undefined) sizes.set(message, size = sizeOf(message));
    bytes += size;
  }
  return Math.ceil(bytes / 4);
}

/** Returns the number of bytes that a model reads of a message. */
function sizeOf(message: Message): number {
  const parts: readonly (AnswerPart | ContentPart)[] = message.role === "tool"
    ? message.results.flatMap(({ parts }) => parts)
    : message.parts;
  return parts.reduce((size, part) => size + overhead + sizeOfPart(part), 0);
}

function sizeOfPart(part: AnswerPart | ContentPart): number {
  switch (part.type) {
    case "media":
      return mediaSize;
    case "text":
    case "reasoning":
      return utf8Length(part.text);
    case "call":
    case "provider_call":
      return utf8Length(part.name + JSON.stringify(part.input));
    case "provider_result":
      return utf8Length(JSON.stringify(part.output));
    default:
      return 0; // models do not receive it
  }
}

/** Returns the length of `text` in UTF-8, without encoding it: most texts are short. */
function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) bytes += unit <= 0x7ff || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2; // a surrogate has two of its pair's four bytes
  }
  return bytes;
}
