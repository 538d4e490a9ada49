/**
 * What is alike in both kinds of requests: contents, and what may be missing or null.
 *
 * @module
 */
import type { ContentPart } from "../../protocol/message.ts";
import { list, optional, record, type Shape, text } from "../shape.ts";

/** A value that may be missing, which some clients write as null. */
export function maybe<T>(shape: Shape<T>): Shape<T | undefined> {
  const given = optional(shape);
  return (value, at) => value === null ? undefined : given(value, at);
}

const part = record<Part>({
  text: maybe(text),
  image_url: maybe((value, at) => typeof value === "string" ? value : record({ url: text })(value, at).url),
});

interface Part {
  readonly text?: string | undefined;
  readonly image_url?: string | undefined;
}

/** A content: a text, or parts, of which texts and images are heard. */
export const content: Shape<readonly ContentPart[]> = (value, at) => {
  if (typeof value === "string") return [{ type: "text", text: value }];
  return list(part)(value, at).flatMap(({ text, image_url }): ContentPart[] => {
    if (text !== undefined) return [{ type: "text", text }];
    return image_url === undefined ? [] : [imageAt(image_url)];
  });
};

function imageAt(url: string): ContentPart {
  const [, mediaType = "image/*", data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
  return { type: "media", mediaType, ...(data === undefined ? { url } : { data }) };
}
