/**
 * Functions on texts: safe text for a terminal, prefixes, wildcards, and token estimates.
 *
 * @module
 */
import type { Message } from "../../protocol/message.ts";
import type { AnswerPart, ContentPart } from "../../protocol/part.ts";

/** Escapes the characters that a terminal would execute or hide, and line breaks, except for `kept`. */
export function visible(text: string, kept = ""): string {
  return text.replace(/\p{C}/gu, (char) => char === kept ? char : `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** Returns, for each prefix of a text, the length of its longest proper prefix that is also its suffix (Knuth, Morris, Pratt 1977). */
export function bordersOf(text: string): Uint32Array {
  const borders = new Uint32Array(text.length);
  for (let at = 1, matched = 0; at < text.length; at++) {
    while (matched > 0 && text[matched] !== text[at]) matched = borders[matched - 1] ?? 0;
    if (text[matched] === text[at]) matched++;
    borders[at] = matched;
  }
  return borders;
}

/** Compiles a pattern in which `*` is a wildcard. Each piece between two `*` is searched for once, so matching never backtracks. */
export function wildcard(pattern: string): (text: string) => boolean {
  const [start = "", ...pieces] = pattern.split(/\*+/);
  const end = pieces.pop();
  if (end === undefined) return (text) => text === pattern;
  return (text) => {
    if (!text.startsWith(start)) return false;
    let at = start.length;
    for (const piece of pieces) {
      const found = text.indexOf(piece, at);
      if (found < 0) return false;
      at = found + piece.length;
    }
    return text.length - end.length >= at && text.endsWith(end);
  };
}

// Token estimates: four bytes of UTF-8 per token, without a tokenizer.

/** Bytes that a provider adds around each part. */
const overhead = 28;

/** Bytes that an image or a file counts as. Providers count its content, not its encoding. */
const mediaSize = 6_400;

/** Returns the estimated number of tokens of `messages`. */
export function estimateTokens(messages: readonly Message[]): number {
  return tokenMeter()(messages);
}

/** Creates a function that estimates the tokens of a transcript. As long as the transcript grows at its end, each message is measured once. */
export function tokenMeter(): typeof estimateTokens {
  let measured: readonly Message[] = [];
  let bytes = 0;
  return (messages) => {
    const grows = measured.every((message, index) => message === messages[index]);
    bytes = grows ? bytes + sizeOf(messages.slice(measured.length)) : sizeOf(messages);
    measured = messages;
    return Math.ceil(bytes / 4);
  };
}

/** Returns the number of bytes that a model reads of `messages`. */
function sizeOf(messages: readonly Message[]): number {
  let size = 0;
  for (const message of messages) {
    const contents: readonly { readonly parts: readonly (AnswerPart | ContentPart)[] }[] = message.role === "tool"
      ? message.results
      : [message];
    for (const { parts } of contents) for (const part of parts) size += overhead + sizeOfPart(part);
  }
  return size;
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
      return part.name.length + utf8Length(JSON.stringify(part.input) ?? ""); // names are ASCII
    case "provider_result":
      return utf8Length(JSON.stringify(part.output));
    default:
      return 0; // models do not receive it
  }
}

const encoder = /* @__PURE__ */ new TextEncoder();

/** Returns the length of `text` in UTF-8. Encoding it is five times as fast as a look at each character. */
function utf8Length(text: string): number {
  return encoder.encode(text).length;
}
