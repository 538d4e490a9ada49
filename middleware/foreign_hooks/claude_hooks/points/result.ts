/**
 * Results of tools, as hooks receive and return them.
 *
 * @module
 */
import * as z from "zod";
import { type ContentPart, textOf } from "../../../../mod.ts";
import { textPart } from "../../kit/call.ts";
import { parseJson } from "../../kit/fields.ts";
import type { Dialect } from "../config/dialect.ts";

/** Returns a result as `tool_response`: its text, the JSON in its text, or blocks of content if it has more than text. */
export function responseOf(
  result: { readonly parts: readonly ContentPart[] },
  response: Dialect["response"],
): unknown {
  if (result.parts.some(({ type }) => type !== "text")) return result.parts.map(blockOf);
  const text = textOf(result);
  return response === "text" || !/^\s*[[{]/.test(text) ? text : parseJson(text) ?? text;
}

function blockOf(part: ContentPart): unknown {
  if (part.type === "text") return part;
  const { mediaType: mimeType, data, url: uri } = part;
  return data === undefined ? { type: "resource_link", uri, mimeType } : { type: "image", data, mimeType };
}

const block = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), data: z.string(), mimeType: z.string() })
    .transform(({ data, mimeType: mediaType }) => ({ type: "media" as const, data, mediaType })),
]);
const blocks = z.array(block).min(1);
const content = z.union([blocks, z.object({ content: blocks }).transform(({ content }) => content)]);

/** Returns the parts of an output that a hook returned: a text, blocks of content, or another value as JSON. */
export function partsOf(output: unknown): readonly ContentPart[] {
  if (typeof output === "string") return [textPart(output)];
  const parsed = content.safeParse(output);
  return parsed.success ? parsed.data : [textPart(JSON.stringify(output) ?? "")];
}
