/**
 * What is alike in both kinds of requests: contents, and what may be missing or null.
 *
 * @module
 */
import type { ContentPart, Json } from "../../protocol/message.ts";
import type { DeclaredTool } from "../client_tool.ts";
import { list, optional, record, type Shape, text, word, wrong } from "../shape.ts";

/** A value that may be missing, which some clients write as null. */
export function maybe<T>(shape: Shape<T>): Shape<T | undefined> {
  const given = optional(shape);
  return (value, at) => value === null ? undefined : given(value, at);
}

/** A parameter that changes nothing by being one of these values, or missing: in no other way is it served. */
export function only(...values: readonly unknown[]): Shape<undefined> {
  return (value, at) => {
    if (value !== undefined && value !== null && !values.includes(value)) {
      throw wrong(at, "nothing else than its default");
    }
  };
}

/** Whether the tools that a client declares may be called. */
export const choice = maybe(word("auto", "none"));

/** A tool as a client declares it. */
interface Declared {
  readonly name: string;
  readonly description?: string | undefined;
  readonly parameters?: { readonly [key: string]: Json } | undefined;
}

/** The tools that may be called of those that a client declares. */
export function declaredOf(choice: string | undefined, tools: readonly Declared[] = []): readonly DeclaredTool[] {
  return choice === "none" ? [] : tools.map((tool) => ({ ...tool, schema: tool.parameters }));
}

/** How an answer looks, which is up to the agent. */
export const format = maybe(record({ type: only("text") }));

const part = record<Part>({
  text: maybe(text),
  image_url: maybe((value, at) => typeof value === "string" ? value : record({ url: text })(value, at).url),
});

interface Part {
  readonly text?: string | undefined;
  readonly image_url?: string | undefined;
}

/** A content: a text, or parts, each of them a text or an image. */
export const content: Shape<readonly ContentPart[]> = (value, at) =>
  typeof value === "string" ? [{ type: "text", text: value }] : list(partOf)(value, at);

const partOf: Shape<ContentPart> = (value, at) => {
  const { text, image_url } = part(value, at);
  if (text !== undefined) return { type: "text", text };
  if (image_url === undefined) throw wrong(at, "a text or an image");
  return imageAt(image_url);
};

function imageAt(url: string): ContentPart {
  const [, mediaType = "image/*", data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
  return { type: "media", mediaType, ...(data === undefined ? { url } : { data }) };
}
