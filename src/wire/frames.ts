/**
 * Frames, and what every wire tells in the same way.
 *
 * @module
 */
import { type ContentPart, textOf } from "../protocol/message.ts";

/** A frame of data. */
export function frameOf(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** The last frame of dialects that have one. */
export const done = "data: [DONE]\n\n";

/** What a tool came to: what it said as JSON is read, and media are shown beside the text. */
export function outputOf({ parts }: { readonly parts: readonly ContentPart[] }): unknown {
  if (parts.some(({ type }) => type !== "text")) return parts;
  const text = textOf({ parts });
  if (!/^[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text; // it only looks like it
  }
}
