/**
 * Frames of server-sent events, and the encoding of tool output that the wires share.
 *
 * @module
 */
import { textOf } from "../protocol/message.ts";
import type { ContentPart } from "../protocol/part.ts";

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
