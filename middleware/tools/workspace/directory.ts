/**
 * Keeps the files of `workspace()` in a directory on disk, on Deno, Node and Bun.
 *
 * @module
 */
import { type FSWatcher, watch as watchFolder } from "node:fs";
import fs from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, sep } from "node:path";
import { expectWritable, isIgnored, shown } from "./path.ts";
import { ToolError } from "../../../mod.ts";
import { type FileChange, type FileContent, type Files, hashOf, Locks } from "../../../src/core/kit.ts";
export type { Files } from "../../../src/core/kit.ts";

// Resolves paths in a directory on disk, with all links followed, and refuses those that leave it.

/** Creates the resolver of `directory`, whose real path is looked up on first use. */
function pathsIn(directory: string | URL) {
  let known: string | undefined;

  /** Returns the real path of the directory itself. */
  async function root(): Promise<string> {
    return known ??= await fs.realpath(directory);
  }

  /** Returns the real path of `path`, or `undefined` if nothing is there. Throws a `ToolError` if it leaves the directory. */
  async function find(path: string): Promise<string | undefined> {
    const start = await root();
    const full = path === "." ? start : `${start}${sep}${path}`;
    let found = await fs.realpath(full).catch(ignoreMissing);
    while (found === undefined) {
      const info = await fs.lstat(full).catch(ignoreMissing);
      if (!info) return undefined;
      if (info.isSymbolicLink()) throw refusal(path, "it is a broken link");
      found = await fs.realpath(full).catch(ignoreMissing); // created in the meantime
    }
    const prefix = start.endsWith(sep) ? start : start + sep; // the root of a disk ends with a separator
    if (found !== start && !found.startsWith(prefix)) throw refusal(path, "it is a link out of the workspace");
    return found;
  }

  /** Returns the real path of a folder, and creates the folder if it is missing. */
  async function folder(path: string): Promise<string> {
    let found = await find(path);
    if (found === undefined) {
      const end = path.lastIndexOf("/");
      const parent = await folder(end < 0 ? "." : path.slice(0, end));
      const place = `${parent}${sep}${path.slice(end + 1)}`;
      expectWritable(await fromRoot(place)); // a link may lead to a protected folder
      await fs.mkdir(place).catch(ignoreExisting);
      found = await find(path);
    }
    if (found === undefined) throw refusal(path, "its folder was replaced in the meantime");
    if (!(await fs.lstat(found)).isDirectory()) throw refusal(path, "it is a file; expected a folder");
    return found;
  }

  /** Returns the path from the root, with `/` between names, of a real path in the directory. */
  async function fromRoot(place: string): Promise<string> {
    return place.slice((await root()).length).split(sep).filter((name) => name !== "").join("/");
  }

  return { root, find, folder, fromRoot };
}

/** Creates the error for a path that cannot be used. */
function refusal(path: string, reason: string): ToolError {
  return new ToolError(`Cannot open ${shown(path)}: ${reason}.`);
}

/** Returns `undefined` if an operation failed because nothing is at its path. Rethrows other errors. */
function ignoreMissing(error: unknown): undefined {
  if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) throw error;
}

/** Returns `undefined` if an operation failed because something is already at its path. Rethrows other errors. */
function ignoreExisting(error: unknown): undefined {
  if (codeOf(error) !== "EEXIST") throw error;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

// Replaces files atomically: a draft next to the file locks it, receives the new content, and is renamed to the file.

/** A draft that is older was left by a process that died, in milliseconds. */
const staleAfter = 10_000;
/** Time between attempts to take the lock, in milliseconds. */
const interval = 5;

/** The new content of a file. While it exists, no other process that uses this module writes the file. */
interface Draft {
  /** Writes the content, with the permissions of `mode`, and replaces the file with it. Returns false if the folder was replaced in the meantime. */
  commit(bytes: Uint8Array, mode: number | undefined): Promise<boolean>;
  /** Deletes the draft if it was not committed. */
  discard(): Promise<void>;
}

/** Returns whether a name in a folder is that of a draft. */
function isDraft(name: string): boolean {
  return /^\.jizai-[0-9a-f]{16}$/.test(name);
}

/**
 * Waits until no other process writes `file`, a real path, and opens a draft of it. Returns `undefined` if the folder of the file is no longer at its path.
 * Processes share no lock that notifies, so this asks every few milliseconds.
 */
async function openDraft(file: string): Promise<Draft | undefined> {
  const folder = dirname(file);
  const place = `${folder === sep ? "" : folder}${sep}.jizai-${await nameHash(basename(file))}`;
  for (;;) {
    const handle = await fs.open(place, "wx").catch(ignoreExisting);
    if (handle) return await verified(handle, place, file);
    const other = await fs.lstat(place).catch(ignoreMissing);
    if (other && Date.now() - other.mtimeMs > staleAfter) await fs.unlink(place).catch(ignoreMissing);
    else await new Promise((resolve) => setTimeout(resolve, interval));
  }
}

/** Wraps a new draft, or deletes it if a link led to another folder while it was created. */
async function verified(handle: FileHandle, place: string, file: string): Promise<Draft | undefined> {
  const { ino, dev } = await handle.stat();
  let isOpen = true;

  /** Returns the real path at which the draft is now. */
  async function realPlace(): Promise<string | undefined> {
    const real = await fs.realpath(place).catch(ignoreMissing);
    const stat = real === undefined ? undefined : await fs.lstat(real).catch(ignoreMissing);
    return stat?.ino === ino && stat.dev === dev ? real : undefined;
  }

  async function close(): Promise<void> {
    if (isOpen) await handle.close();
    isOpen = false;
  }

  async function discard(): Promise<void> {
    await close();
    const real = await realPlace();
    if (real !== undefined) await fs.unlink(real).catch(ignoreMissing);
  }

  if (await realPlace() !== place) {
    await discard();
    return undefined;
  }
  return {
    async commit(bytes, mode) {
      if (mode !== undefined) await handle.chmod(mode & 0o777);
      await handle.writeFile(bytes);
      await close();
      if (await realPlace() !== place) return false;
      return await fs.rename(place, file).then(() => true, ignoreMissing) ?? false;
    },
    discard,
  };
}

/** Hashes a name to 16 hexadecimal digits, so that the name of a draft is never too long. */
async function nameHash(name: string): Promise<string> {
  return (await hashOf(name)).slice(0, 16);
}

// Watches a directory: reports files that are added, changed and deleted, also by other programs.

const maxFolders = 10_000;

/**
 * Calls `changed` for each change beneath `root`, a real path, and returns a function that ends the watch. Every folder has a watcher of its own, because a
 * recursive watcher follows links. Throws a `RangeError` if there are more than 10,000 folders.
 */
async function watch(root: string, changed: (change: FileChange) => void): Promise<() => Promise<void>> {
  const watchers = new Map<string, FSWatcher>();
  /** The last known state of each file. One change can cause several notifications. */
  const files = new Map<string, string>();
  /** Handles one notification at a time. */
  let queue = Promise.resolve();
  let failure: { readonly error: unknown } | undefined;
  let ended = false;

  function emit(place: string, change: FileChange["change"]): void {
    changed({ path: place.slice(root.length).split(sep).filter((name) => name !== "").join("/"), change });
  }

  function fail(error: unknown): void {
    failure ??= { error };
  }

  function enqueue(place: string): void {
    if (!ended) queue = queue.then(() => look(place)).catch(fail); // reported when the watch ends
  }

  /** Watches a folder and the folders in it. Returns the files in them. */
  async function enter(folder: string): Promise<readonly string[]> {
    const found = await gather(folder);
    if (watchers.size + found.folders.length > maxFolders) {
      throw new RangeError(`Cannot watch ${root}: it has too many folders; expected at most ${maxFolders}`);
    }
    for (const each of found.folders) {
      if (ended || watchers.has(each)) continue;
      const watcher = watchFolder(each, (_, name) => enqueue(name === null ? each : `${each}${sep}${name}`));
      watcher.on("error", fail);
      watchers.set(each, watcher);
    }
    return found.files;
  }

  /** Compares a place with its last known state. */
  async function look(place: string): Promise<void> {
    if (isDraft(place.slice(place.lastIndexOf(sep) + 1))) return;
    const real = await fs.realpath(place).catch(ignoreMissing);
    const info = real === place ? await fs.lstat(place).catch(ignoreMissing) : undefined;
    if (!info) return leave(place);
    if (info.isFile()) return see(place, `${info.ino} ${info.size} ${info.mtimeMs}`);
    if (!info.isDirectory() || watchers.has(place) || isIgnored(place.slice(root.length + 1))) return;
    await enter(place);
    for (const file of (await gather(place)).files.toSorted()) await look(file); // files created before the watcher
  }

  function see(file: string, state: string): void {
    const before = files.get(file);
    files.set(file, state);
    if (state !== before) emit(file, before === undefined ? "add" : "change");
  }

  /** Forgets a file, or a folder with everything in it. */
  function leave(place: string): void {
    if (files.delete(place)) return emit(place, "unlink");
    if (!watchers.has(place)) return;
    const isWithin = (each: string) => each === place || each.startsWith(place + sep);
    for (const [folder, watcher] of watchers) {
      if (!isWithin(folder)) continue;
      watcher.close();
      watchers.delete(folder);
    }
    for (const file of files.keys()) {
      if (isWithin(file) && files.delete(file)) emit(file, "unlink");
    }
  }

  for (const file of await enter(root)) files.set(file, "unknown");
  return async () => {
    ended = true;
    for (const watcher of watchers.values()) watcher.close();
    await queue;
    if (failure) throw failure.error;
  };
}

/** A folder, the folders in it that a walk enters, and the files in all of them. */
interface Inventory {
  readonly folders: string[];
  readonly files: string[];
}

async function gather(folder: string, found: Inventory = { folders: [], files: [] }): Promise<Inventory> {
  found.folders.push(folder);
  for (const entry of await fs.readdir(folder, { withFileTypes: true }).catch(ignoreMissing) ?? []) {
    const place = `${folder}${sep}${entry.name}`;
    if (entry.isFile() && !isDraft(entry.name)) found.files.push(place);
    else if (entry.isDirectory() && !isIgnored(entry.name)) await gather(place, found);
  }
  return found;
}

// The files of a directory, as `workspace()` reads and writes them.

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
    return place === undefined ? undefined : (await readFileAt(path, place))?.content;
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
      const before = await readFileAt(path, place);
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
async function readFileAt(path: string, place: string): Promise<ReadFile | undefined> {
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
