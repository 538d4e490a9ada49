/**
 * What is in an open file.
 *
 * @module
 */
import type { FileContent } from "../../../../mod.ts";

/** All of a file that was just opened. */
export async function contentOf(file: Deno.FsFile): Promise<FileContent> {
  const bytes = new Uint8Array((await file.stat()).size);
  let length = 0;
  for (let read: number | null = 1; read && length < bytes.length; length += read ?? 0) {
    read = await file.read(bytes.subarray(length));
  }
  const all = bytes.subarray(0, length);
  return { bytes: all, version: await versionOf(all) };
}

/** Makes `bytes` all that is in a file, and gives their version. */
export async function refill(file: Deno.FsFile, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  await file.seek(0, Deno.SeekMode.Start);
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
  if ((await file.stat()).size > bytes.length) await file.truncate(bytes.length);
  return await versionOf(bytes);
}

/** The SHA-256 of a content. */
async function versionOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
