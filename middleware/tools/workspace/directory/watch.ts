/**
 * Watches a directory.
 *
 * @module
 */
import { type FSWatcher, watch as watchFolder } from "node:fs";
import fs from "node:fs/promises";
import { sep } from "node:path";
import type { FileChange } from "../../../../src/core/kit.ts";
import { isIgnored } from "../walk.ts";
import { isDraft } from "./draft.ts";
import { ignoreMissing } from "./paths.ts";

const maxFolders = 10_000;

/**
 * Calls `changed` for each change beneath `root`, a real path, and returns a function that ends the watch. Every folder has a watcher of its own, because a
 * recursive watcher follows links. Throws a `RangeError` if there are more than 10,000 folders.
 */
export async function watch(root: string, changed: (change: FileChange) => void): Promise<() => Promise<void>> {
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
