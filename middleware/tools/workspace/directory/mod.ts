/**
 * Keeps the files of `workspace()` in a directory on disk, on Deno, Node and Bun.
 *
 * @module
 */
import fs, { type FileHandle } from "node:fs/promises";
import { sep } from "node:path";
import { type FileContent, type Files, hashOf, Locks } from "../../../../src/core/kit.ts";
import { expectWritable } from "../path.ts";
import { isDraft, openDraft } from "./draft.ts";
import { ignoreMissing, pathsIn, refusal } from "./paths.ts";
import { watch } from "./watch.ts";

const maxAttempts = 100;

/** Locks are held for a short time, so a wait for one is never cancelled. */
const uncancelled = { aborted: false, reason: undefined, onAbort: () => () => {} };

/**
 * Keeps files in an existing directory. Deno asks for permission to read and to write it.
 *
 * Links are followed if they stay in the directory; `list` leaves them out. An opened file is checked once more before it is read, so a link that is
 * created in the meantime leads nowhere else. A write replaces the file atomically, so a reader sees the old content or the new one, other hard links to
 * the file keep the old one, and of several writers one wins, also if they are processes. A write is refused in folders of version control and of hooks.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { workspace } from "@jizai/jizai/middleware/workspace";
 * import { directory } from "@jizai/jizai/middleware/workspace/directory";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const assistant = agent({ model: scripted("Hello!"), use: [workspace(directory("./project"))] });
 * ```
 */
export function directory(path: string | URL): Files {
  const { root, find, folder, fromRoot } = pathsIn(path);
  /** Writers in this process wait here, and not for the draft on disk. */
  const locks = new Locks();

  async function read(path: string): Promise<FileContent | undefined> {
    const place = await find(path);
    return place === undefined ? undefined : (await open(path, place))?.content;
  }

  /** Returns the real path of a file that may not exist yet. Its folder is created. */
  async function placeOf(path: string): Promise<string> {
    const found = await find(path);
    if (found !== undefined) return found;
    const end = path.lastIndexOf("/");
    return `${await folder(end < 0 ? "." : path.slice(0, end))}${sep}${path.slice(end + 1)}`;
  }

  /** Replaces a file if its version is still `version`. */
  async function write(
    path: string,
    bytes: Uint8Array<ArrayBuffer>,
    version: string | undefined,
  ): Promise<string | undefined> {
    if (version !== undefined && await find(path) === undefined) return undefined;
    const place = await placeOf(path);
    expectWritable(await fromRoot(place)); // a link may lead to a protected folder
    const draft = await openDraft(place);
    if (!draft) throw refusal(path, "its folder was replaced in the meantime");
    try {
      const before = await open(path, place);
      if (before?.content.version !== version) return undefined;
      const committed = await draft.commit(bytes, before?.mode);
      if (!committed) throw refusal(path, "its folder was replaced in the meantime");
      return await hashOf(bytes);
    } finally {
      await draft.discard();
    }
  }

  return {
    async stat(path) {
      const place = await find(path);
      const info = place === undefined ? undefined : await fs.lstat(place).catch(ignoreMissing);
      if (info?.isDirectory()) return { type: "folder" };
      return info?.isFile() ? { type: "file", size: info.size } : undefined;
    },
    read,
    write: (path, bytes, version) => locks.hold(path, uncancelled, () => write(path, bytes, version)),
    async delete(path) {
      const place = await find(path);
      if (place === undefined) return;
      expectWritable(await fromRoot(place));
      await fs.unlink(place).catch(ignoreMissing);
    },
    async *list(path) {
      const place = await find(path);
      if (place === undefined) return;
      const entries = await fs.readdir(place, { withFileTypes: true });
      if (await find(path) !== place) throw refusal(path, "it was replaced in the meantime");
      for (const entry of entries) {
        if (isDraft(entry.name) || !(entry.isFile() || entry.isDirectory())) continue;
        yield { name: entry.name, type: entry.isFile() ? "file" : "folder" };
      }
    },
    watch: async (changed) => await watch(await root(), changed),
  };
}

/** A file that was read. */
interface ReadFile {
  readonly content: FileContent;
  readonly mode: number;
}

/** Reads the file at a real path, or returns `undefined` if there is none. Throws a `ToolError` if a link is created at the path in the meantime. */
async function open(path: string, place: string): Promise<ReadFile | undefined> {
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const info = await fs.lstat(place).catch(ignoreMissing);
    if (!info) return undefined;
    if (!info.isFile()) throw refusal(path, "it is not a file"); // opening a pipe would wait for its other end
    const bytes = await bytesAt(place);
    if (bytes) return { content: { bytes, version: await hashOf(bytes) }, mode: info.mode };
  }
  throw refusal(path, "it was replaced in the meantime");
}

/** Reads the file at `place`; returns `undefined` if it was replaced while it was opened. */
async function bytesAt(place: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const file = await fs.open(place, "r").catch(ignoreMissing);
  try {
    return file && await isAt(place, file) ? new Uint8Array(await file.readFile()) : undefined;
  } finally {
    await file?.close();
  }
}

/** Returns whether an open file is the file at `place`, and no link leads there. */
async function isAt(place: string, file: FileHandle): Promise<boolean> {
  const { ino, dev } = await file.stat();
  const present = await fs.realpath(place).catch(ignoreMissing) === place
    ? await fs.lstat(place).catch(ignoreMissing)
    : undefined;
  return ino === present?.ino && dev === present.dev;
}
