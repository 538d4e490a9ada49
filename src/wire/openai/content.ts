/**
 * The parts of a request that both of OpenAI's dialects share: content, tools, and parameters that may be null.
 *
 * @module
 */
import type { AnswerPart, ContentPart } from "../../protocol/part.ts";
import { array, invalid, lazy, object, type Shape, string } from "../../protocol/shape.ts";
import type { DeclaredTool } from "../client_tool.ts";

/** Parses a value that may be missing or null. */
export function nullish<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, path) => value === undefined || value === null ? undefined : shape(value, path);
}

/** Rejects a parameter that the server does not implement, unless it has one of its default values. */
export function unsupported(...defaults: readonly unknown[]): Shape<undefined> {
  return (value, path) => {
    if (value !== undefined && value !== null && !defaults.includes(value)) {
      throw invalid(path, "no value other than its default");
    }
  };
}

/** Returns the declared tools; none if the client set `tool_choice` to "none". */
export function declaredTools(
  choice: string | undefined,
  tools: readonly DeclaredTool[] = [],
): readonly DeclaredTool[] {
  return choice === "none" ? [] : tools;
}

const imageUrl: Shape<string> = (value, path) =>
  typeof value === "string" ? value : object({ url: string })(value, path).url;

const part = /* @__PURE__ */ lazy(() => {
  const address = { file_data: nullish(string), file_url: nullish(string) };
  return object({
    text: nullish(string),
    image_url: nullish(imageUrl),
    input_audio: nullish(object({ data: string, format: string })),
    file: nullish(object(address)),
    ...address,
    data: nullish(string),
  });
});

/** Parses content: a string, or an array of texts, images, recordings and files. */
export const content: Shape<readonly ContentPart[]> = (value, path) =>
  typeof value === "string" ? [{ type: "text", text: value }] : array(contentPart)(value, path);

/** Parses one part of content. Only an `output_audio`, a recording that the agent made, has its `data` directly. */
export const contentPart: Shape<ContentPart> = (value, path) => {
  const { text, image_url, input_audio, file, ...own } = part(value, path);
  if (text !== undefined) return { type: "text", text };
  if (image_url !== undefined) return fileAt(image_url, "image/*");
  const { data, format } = input_audio ?? { data: own.data, format: "*" };
  if (data) return { type: "media", mediaType: `audio/${format}`, data };
  const { file_data, file_url } = file ?? own;
  const url = file_data ?? file_url;
  if (url === undefined) throw invalid(path, "a text, an image, a recording or a file");
  return fileAt(url, "application/pdf");
};

function fileAt(url: string, otherwise: string): ContentPart {
  const [, mediaType, data] = /^data:([^;,]*)(?:;[^,]*)?;base64,(.*)$/is.exec(url) ?? [];
  return { type: "media", mediaType: mediaType || otherwise, ...(data === undefined ? { url } : { data }) };
}

/** Returns the parts of a refusal: its text, unless `before` is that text already, and the refusal itself. */
export function refusalParts(refusal: string, before = ""): readonly AnswerPart[] {
  if (refusal === "") return [];
  return [...before === refusal ? [] : [{ type: "text", text: refusal } as const], { type: "refusal", text: refusal }];
}
