/**
 * Calls and their results, as hooks are told of them and as they tell them.
 *
 * @module
 */
import * as z from "zod";
import { type ContentPart, textOf, type ToolContext } from "../../../mod.ts";
import type { Dialect } from "./dialect.ts";

/** What every hook of a call is told. */
export function toldOf({ call, name, input }: Pick<ToolContext, "call" | "name" | "input">) {
  const [, server] = name.match(/^mcp__(.+?)__/) ?? [];
  return {
    tool_name: name,
    tool_input: input,
    tool_use_id: call.id,
    ...(server !== undefined && { mcp_server: { name: server, source: "dynamic" } }),
  };
}

/** What a result says: its text, an object that its text is the JSON of, or, where it has more than text, blocks of content. */
export function responseOf(result: { readonly parts: readonly ContentPart[] }, { response }: Dialect): unknown {
  if (result.parts.some(({ type }) => type !== "text")) return result.parts.map(blockOf);
  const text = textOf(result);
  if (response === "text" || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
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

/** What the model reads of an output that a hook gives: a text, blocks of content, or whatever else as JSON. */
export function partsOf(output: unknown): readonly ContentPart[] {
  if (typeof output === "string") return [{ type: "text", text: output }];
  const parsed = content.safeParse(output);
  return parsed.success ? parsed.data : [{ type: "text", text: JSON.stringify(output) ?? "" }];
}
