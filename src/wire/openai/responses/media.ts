/**
 * Generated files in the output of the Responses API. An image is an item, as OpenAI's own tool makes it. Messages of OpenAI contain no files; other files are
 * sent in the form that a client uses for its own: `input_file` and `input_image`.
 *
 * @module
 */
import type { MediaPart } from "../../../protocol/part.ts";
import { isObject } from "../../../protocol/shape.ts";
import type { OutputItem } from "./output.ts";

/** Returns the item of an image: that of OpenAI if it made it. Returns undefined for other files, and for an image that has only an address. */
export function imageItem({ mediaType, data, meta }: MediaPart): OutputItem | undefined {
  const [kind, format] = mediaType.split("/");
  if (kind !== "image" || data === undefined) return undefined;
  const { item = { output_format: format } } = isObject(meta) ? meta : {};
  return { ...(isObject(item) && item), type: "image_generation_call", result: data };
}

/** Returns the content of a message for a file. The transcript of a recording is the text before it. */
export function fileContent({ mediaType, data, url }: MediaPart, transcript = ""): object {
  const [kind, format] = mediaType.split("/");
  if (data === undefined) {
    return kind === "image"
      ? { type: "input_image", image_url: url, detail: "auto" }
      : { type: "input_file", file_url: url };
  }
  if (kind === "audio") return { type: "output_audio", data, transcript };
  return { type: "input_file", filename: `file.${format}`, file_data: `data:${mediaType};base64,${data}` };
}
