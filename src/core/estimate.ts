/**
 * Estimates: how many tokens messages will take, without anybody who counts them.
 *
 * @module
 */
import type { AnswerPart, ContentPart, Message } from "../protocol/message.ts";

/** Bytes that a provider adds around each part. */
const frame = 28;

/** What an image or a file counts as, whatever its data: providers count what it shows. */
const medium = 6_400;

/** Tokens that `messages` will take, estimated at four bytes a token. */
export function estimateTokens(messages: readonly Message[]): number {
  return tokensOf(sizeOf(messages));
}

/** Tokens that so many bytes will take. */
export function tokensOf(size: number): number {
  return Math.ceil(size / 4);
}

/** Bytes of what a model reads of `messages`. */
export function sizeOf(messages: readonly Message[]): number {
  let size = 0;
  for (const message of messages) {
    if (message.role === "tool") { for (const { parts } of message.results) size += sizeOfParts(parts); }
    else size += sizeOfParts(message.parts);
  }
  return size;
}

function sizeOfParts(parts: readonly (AnswerPart | ContentPart)[]): number {
  let size = 0;
  for (const part of parts) size += frame + sizeOfPart(part);
  return size;
}

function sizeOfPart(part: AnswerPart | ContentPart): number {
  switch (part.type) {
    case "media":
      return medium;
    case "call":
      return bytesOf(part.name) + bytesOf(JSON.stringify(part.input) ?? "");
    default:
      return bytesOf(part.text);
  }
}

/** Bytes of a text in UTF-8, counted without making them. */
function bytesOf(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) bytes += unit <= 0x7ff || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2; // half of a pair has two of its four
  }
  return bytes;
}
