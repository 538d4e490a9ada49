/**
 * Frames of server-sent events, and the encoding of tool output that the wires share.
 *
 * @module
 */
import { type Message, textOf } from "../protocol/message.ts";
import type { ContentPart } from "../protocol/part.ts";

// Ids of messages, for clients that name a message later.

/** Returns the id of a message of a session: the one that its client gave it, or else its place in the session. */
export function messageIdOf(session: string, message: Message, index: number): string {
  return (message.role === "user" ? message.id : undefined) ?? `${session}.${index}`;
}

// Frames, and the output of a call.

/** Encodes `data` as one frame. */
export function frameOf(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** The last frame of a stream, in the dialects that have one. */
export const doneFrame = "data: [DONE]\n\n";

/** Returns the output of a tool: text that is JSON is parsed, and a result with media is returned as its parts. */
export function outputOf({ parts }: { readonly parts: readonly ContentPart[] }): unknown {
  if (parts.some(({ type }) => type !== "text")) return parts;
  const text = textOf({ parts });
  if (!/^[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text; // it only begins like JSON
  }
}
