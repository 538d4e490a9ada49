/**
 * Images and files on the wire: references.
 *
 * @module
 */
import type { MediaPart } from "../../../../mod.ts";

/** Returns the reference of an image or a file: its URL, or a data URL. */
export function refOf({ mediaType, data, url }: MediaPart): string {
  return url ?? `data:${mediaType};base64,${data}`;
}

const types: Readonly<Record<string, string>> = {
  gif: "image/gif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  mp3: "audio/mpeg",
  pdf: "application/pdf",
  png: "image/png",
  wav: "audio/wav",
  webp: "image/webp",
};

/** Returns the image or file of a reference; undefined for a reference that only the home system knows. */
export function mediaOf(ref: string): MediaPart | undefined {
  const [, mediaType, data] = ref.match(/^data:([\w.+-]+\/[\w.+-]+);base64,(.*)$/s) ?? [];
  if (mediaType !== undefined && data !== undefined) return { type: "media", mediaType, data };
  if (!/^https?:/.test(ref)) return undefined;
  const [, ending = ""] = URL.parse(ref)?.pathname.match(/\.(\w+)$/) ?? [];
  return { type: "media", mediaType: types[ending.toLowerCase()] ?? "application/octet-stream", url: ref };
}
