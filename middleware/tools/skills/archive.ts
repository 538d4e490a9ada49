/**
 * Unpacks the archive of a skill in memory: a `.tar.gz` or a `.zip`. An archive that holds more than it may, a link, or a path that leaves the skill is
 * refused as a whole.
 *
 * @module
 */

/** The files of an archive, by path. */
export type Unpacked = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

/** Unpacks an archive, whose files may have `maxBytes` bytes together. Throws a `TypeError` for another format, and a `RangeError` for more bytes. */
export async function unpack(archive: Uint8Array<ArrayBuffer>, maxBytes: number): Promise<Unpacked> {
  const files = new Files(maxBytes);
  if (archive[0] === 0x1f && archive[1] === 0x8b) untar(await inflate(archive, "gzip", maxBytes), files);
  else if (viewOf(archive).getUint32(0) === 0x504b0304) await unzip(archive, files);
  else throw new TypeError("it is neither a .tar.gz nor a .zip file");
  return files.byPath;
}

/** Collects files, and refuses those that an archive of a skill must not contain. */
class Files {
  readonly byPath = new Map<string, Uint8Array<ArrayBuffer>>();
  #left: number;

  constructor(maxBytes: number) {
    this.#left = maxBytes;
  }

  /** The bytes that further files may have. */
  get left(): number {
    return this.#left;
  }

  add(name: string, bytes: Uint8Array<ArrayBuffer>): void {
    const path = name.replace(/^(?:\.\/)+/, "");
    if (path === "" || path.split("/").some((each) => /^\.{0,2}$/.test(each)) || /[\\\p{Cc}]/u.test(path)) {
      throw new TypeError(`it contains the path ${JSON.stringify(name.slice(0, 100))}, which is none within the skill`);
    }
    this.#left -= bytes.length;
    if (this.#left < 0 || this.byPath.size === maxFiles) throw tooLarge();
    this.byPath.set(path, bytes);
  }
}

/** The most files of an archive. */
const maxFiles = 2_000;

function tooLarge(): RangeError {
  return new RangeError(`it contains more than \`maxBytes\`, or more than ${maxFiles} files`);
}

/** Decompresses data. Throws a `RangeError` once it has more than `maxBytes` bytes. */
async function inflate(
  data: Uint8Array<ArrayBuffer>,
  format: "gzip" | "deflate-raw",
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of new Blob([data]).stream().pipeThrough(new DecompressionStream(format))) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

const decoder = new TextDecoder();

/** The size of a block of a tar file. */
const block = 512;

/** Reads a tar file in the forms of ustar, pax and GNU. */
function untar(tar: Uint8Array<ArrayBuffer>, files: Files): void {
  let longName: string | undefined;
  for (let at = 0; at + block <= tar.length && tar[at] !== 0;) {
    const text = (from: number, length: number) =>
      decoder.decode(tar.subarray(at + from, at + from + length)).split("\0")[0] ?? "";
    const size = parseInt(text(124, 12).trim() || "0", 8);
    const type = text(156, 1) || "0";
    const content = tar.subarray(at + block, at + block + size);
    if (!(size >= 0) || content.length < size) throw new TypeError("its tar file is damaged");
    const prefix = text(257, 5) === "ustar" ? text(345, 155) : "";
    const name = longName ?? (prefix ? `${prefix}/${text(0, 100)}` : text(0, 100));
    longName = undefined;
    if (type === "L") longName = decoder.decode(content).split("\0")[0];
    else if (type === "x") longName = /(?:^|\n)\d+ path=(.*)\n/.exec(decoder.decode(content))?.[1];
    else if (type === "0" || type === "7") files.add(name, content);
    else if (type !== "5" && type !== "g") throw new TypeError(`it contains ${JSON.stringify(name)}, which is no file`);
    at += block + Math.ceil(size / block) * block;
  }
}

/** Reads the central directory of a zip file, and its files. */
async function unzip(zip: Uint8Array<ArrayBuffer>, files: Files): Promise<void> {
  const view = viewOf(zip);
  let end = zip.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end--;
  if (end < 0) throw new TypeError("its zip file is damaged");
  let at = view.getUint32(end + 16, true);
  for (let count = view.getUint16(end + 10, true); count > 0; count--) {
    const field = (from: number) => view.getUint16(at + from, true);
    const name = decoder.decode(zip.subarray(at + 46, at + 46 + field(28)));
    if (view.getUint32(at, true) !== 0x02014b50 || field(8) & 1) {
      throw new TypeError("its zip file is damaged or encrypted");
    }
    if (view.getUint32(at + 38, true) >>> 28 === 0xa) {
      throw new TypeError(`it contains ${JSON.stringify(name)}, which is no file`);
    }
    const local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const data = zip.subarray(start, start + view.getUint32(at + 20, true));
    const isStored = field(10) === 0;
    if (!name.endsWith("/")) files.add(name, isStored ? data : await inflate(data, "deflate-raw", files.left));
    at += 46 + field(28) + field(30) + field(32);
  }
}
