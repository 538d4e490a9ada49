/**
 * Writes messages and values as JSON for attributes, masked and with a limited length.
 *
 * @module
 */
import { type AnswerPart, type ContentPart, type Message, textOf } from "../../../mod.ts";

/** Characters of text in one attribute. */
const limit = 16_000;

/** Masks a text. */
export type MaskText = (text: string) => string;

/** Masks texts, and cuts them once the limit is reached. */
interface Writer {
  readonly left: number;
  write(text: string): string;
}

function writerOf(mask: MaskText): Writer {
  let left = limit;
  return {
    get left() {
      return left;
    },
    write(text) {
      const masked = mask(text);
      const kept = masked.slice(0, left);
      left -= kept.length;
      return kept.length < masked.length ? `${kept.toWellFormed()}…` : masked;
    },
  };
}

/** Writes the latest messages that fit, each with the fields of `extra`. */
export function messagesJson(messages: readonly Message[], mask: MaskText, extra: object = {}): string {
  const writer = writerOf(mask);
  const written: object[] = [];
  for (const message of messages.toReversed()) {
    if (writer.left === 0) break;
    written.push({ role: message.role, parts: partsOf(message, writer), ...extra });
  }
  return JSON.stringify(written.reverse());
}

/** Writes a text that is not part of a conversation. */
export function textJson(text: string, mask: MaskText): string {
  return JSON.stringify([{ type: "text", content: writerOf(mask).write(text) }]);
}

/** Writes a value; one that JSON cannot hold is replaced by the name of the error. */
export function valueJson(value: unknown, mask: MaskText): string {
  try {
    return writerOf(mask).write(JSON.stringify(value) ?? "");
  } catch (error) {
    return `not JSON: ${error instanceof Error ? error.name : typeof error}`;
  }
}

function partsOf(message: Message, writer: Writer): object[] {
  const written: object[] = [];
  const parts = message.role === "tool" ? message.results : message.parts;
  for (const part of parts) {
    if (writer.left === 0) break;
    written.push(
      "parts" in part
        ? { type: "tool_call_response", id: part.callId, response: writer.write(textOf(part)) }
        : partOf(part, writer),
    );
  }
  return written;
}

function partOf(part: AnswerPart | ContentPart, writer: Writer): object {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, content: writer.write(part.text) };
    case "call": {
      const text = JSON.stringify(part.input) ?? "";
      const written = writer.write(text);
      return {
        type: "tool_call",
        id: part.id,
        name: writer.write(part.name),
        arguments: written === text ? part.input : written,
      };
    }
    case "provider_call":
      return {
        type: "tool_call",
        id: part.callId,
        name: writer.write(part.name),
        arguments: writer.write(JSON.stringify(part.input)),
      };
    case "provider_result":
      return { type: "tool_call_response", id: part.callId, response: writer.write(JSON.stringify(part.output)) };
    case "source":
    case "refusal":
    case "logprobs":
      return { type: part.type, content: writer.write(JSON.stringify(part)) };
    case "media":
      return { type: "media", mime_type: part.mediaType };
  }
}
