/**
 * What was said, as the conventions write it: only for who asks for it, and never more than so much.
 *
 * @module
 */
import { type AnswerPart, type ContentPart, type Message, textOf } from "../../../mod.ts";

/** Characters of text that one attribute may have. */
const limit = 16_000;

/** Cuts one text after another, until there is no room left. */
interface Room {
  readonly left: number;
  cut(text: string): string;
}

function roomFor(size: number): Room {
  let left = size;
  return {
    get left() {
      return left;
    },
    cut(text) {
      const kept = text.slice(0, left);
      left -= kept.length;
      return kept.length < text.length ? `${kept.toWellFormed()}…` : text;
    },
  };
}

/** Messages, the last of them whatever their number. */
export function messagesJson(messages: readonly Message[], beside: object = {}): string {
  const room = roomFor(limit);
  const written: object[] = [];
  for (const message of messages.toReversed()) {
    if (room.left === 0) break;
    written.push({ role: message.role, parts: partsOf(message, room), ...beside });
  }
  return JSON.stringify(written.reverse());
}

/** A text that is not part of a conversation. */
export function textJson(text: string): string {
  return JSON.stringify([{ type: "text", content: roomFor(limit).cut(text) }]);
}

/** Any value; what is no JSON is not shown. */
export function valueJson(value: unknown): string {
  try {
    return roomFor(limit).cut(JSON.stringify(value) ?? "");
  } catch (error) {
    return `not JSON: ${error instanceof Error ? error.name : typeof error}`;
  }
}

function partsOf(message: Message, room: Room): object[] {
  const written: object[] = [];
  const parts = message.role === "tool" ? message.results : message.parts;
  for (const part of parts) {
    if (room.left === 0) break;
    written.push(
      "callId" in part
        ? { type: "tool_call_response", id: part.callId, response: room.cut(textOf(part)) }
        : partOf(part, room),
    );
  }
  return written;
}

function partOf(part: AnswerPart | ContentPart, room: Room): object {
  switch (part.type) {
    case "text":
    case "reasoning":
      return { type: part.type, content: room.cut(part.text) };
    case "call": {
      const text = JSON.stringify(part.input) ?? "";
      const kept = room.cut(text);
      return { type: "tool_call", id: part.id, name: part.name, arguments: kept === text ? part.input : kept };
    }
    case "media":
      return { type: "media", mime_type: part.mediaType };
  }
}
