/**
 * Unpacks npm tarballs.
 *
 * @module
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { gunzipSync } from "node:zlib";

/** The bytes of a header, and the size to which files are padded. */
const block = 512;

/** The folder that contains all files of an npm package. */
const prefix = "package/";

/** Unpacks the files of a package into `folder`. Throws an `Error` if `bytes` are not an npm tarball. */
export async function unpack(bytes: Uint8Array, folder: string): Promise<void> {
  for (const [path, content] of filesOf(gunzipSync(bytes))) {
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
  }
}

/** Yields the path and content of each regular file in an archive of the format `ustar`. */
function* filesOf(archive: Uint8Array): Generator<[path: string, content: Uint8Array]> {
  let found = 0;
  for (let start = 0; start + block <= archive.length;) {
    const field = (offset: number, length: number) =>
      new TextDecoder().decode(archive.subarray(start + offset, start + offset + length)).replace(/\0[^]*$/, "");
    const name = field(0, 100);
    if (name === "") break; // the end of an archive is empty blocks
    const size = Number.parseInt(field(124, 12), 8);
    const path = [field(345, 155), name].filter((part) => part !== "").join("/");
    const content = archive.subarray(start + block, start + block + size);
    if (["", "0"].includes(field(156, 1))) {
      yield [pathIn(path), content];
      found++;
    }
    start += block + Math.ceil(size / block) * block;
  }
  if (found === 0) throw new Error("Cannot unpack the package: the tarball has no files");
}

/** Returns the path of a file within its package. Throws an `Error` for a path that leads out of it. */
function pathIn(path: string): string {
  const inside = normalize(path.slice(prefix.length));
  if (!path.startsWith(prefix) || inside.startsWith("..")) {
    throw new Error(`Cannot unpack "${path}": expected a path in "${prefix}"`);
  }
  return inside;
}
