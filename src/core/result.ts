/**
 * What calls come to.
 *
 * @module
 */
import type { ContentPart, ResultStatus, ToolResult } from "../protocol/message.ts";

/** A result of this status that says `content`. */
export function result(status: ResultStatus, content: string | readonly ContentPart[]): ToolResult {
  return { type: "result", status, parts: typeof content === "string" ? [{ type: "text", text: content }] : content };
}
