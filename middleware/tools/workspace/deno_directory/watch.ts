/**
 * What happens in a directory.
 *
 * @module
 */
import type { FileChange } from "../../../../mod.ts";
import { isClosed } from "../walk.ts";
import { missing, separator } from "./paths.ts";

const mostFolders = 10_000;

/**
 * Tells `hear` of each change beneath `root`, and gives what ends that. No link is followed: the system would, and watch a whole disk if it leads there.
 * Throws a `RangeError` where there are too many folders.
 */
export async function watch(root: string, hear: (change: FileChange) => void): Promise<() => Promise<void>> {
  const folders = new Set<string>();
  /** What is known of each file: how it was when it was last looked at, since the system tells the same several times. */
  const files = new Map<string, string>();
  const watchers: Deno.FsWatcher[] = [];
  const listening: Promise<void>[] = [];

  function tell(place: string, change: FileChange["change"]): void {
    hear({ path: place.slice(root.length).split(separator).filter((name) => name !== "").join("/"), change });
  }

  /** Watches a folder and those in it; gives the files that are there. */
  async function enter(folder: string): Promise<readonly string[]> {
    const found = await gather(folder);
    for (const each of found.folders) folders.add(each);
    if (folders.size > mostFolders) {
      throw new RangeError(`Cannot watch ${root}: it has more than ${mostFolders} folders`);
    }
    const watcher = Deno.watchFs(found.folders, { recursive: false });
    watchers.push(watcher);
    const heard = listen(watcher);
    heard.catch(() => {}); // whoever ends the watch is told
    listening.push(heard);
    return found.files;
  }

  async function listen(watcher: Deno.FsWatcher): Promise<void> {
    for await (const { kind, paths } of watcher) {
      if (kind !== "access" && kind !== "other") { for (const place of paths) await look(place); }
    }
  }

  async function look(place: string): Promise<void> {
    const found = await Deno.realPath(place).catch(missing);
    const info = found === place ? await Deno.lstat(place).catch(missing) : undefined;
    if (!info) return leave(place);
    if (info.isFile) return see(place, `${info.ino} ${info.size} ${info.mtime?.getTime()}`);
    if (!info.isDirectory || folders.has(place) || isClosed(place.slice(root.length + 1))) return;
    await enter(place);
    for (const file of (await gather(place)).files.toSorted()) await look(file); // also what came before it was watched
  }

  function see(file: string, now: string): void {
    const before = files.get(file);
    files.set(file, now);
    if (now !== before) tell(file, before === undefined ? "add" : "change");
  }

  /** A file is gone, or a folder with all that was in it. */
  function leave(place: string): void {
    if (files.delete(place)) return tell(place, "unlink");
    if (!folders.has(place)) return;
    const isThere = (each: string) => each === place || each.startsWith(place + separator);
    for (const each of folders) if (isThere(each)) folders.delete(each);
    for (const each of files.keys()) {
      if (isThere(each) && files.delete(each)) tell(each, "unlink");
    }
  }

  for (const file of await enter(root)) files.set(file, "not looked at");
  return async () => {
    for (const watcher of watchers) watcher.close();
    await Promise.all(listening);
  };
}

/** What is in a folder: itself, the folders in it that a walk would enter, and the files in all of them. */
interface Inventory {
  readonly folders: string[];
  readonly files: string[];
}

/** Adds what is in a folder to `found`. */
async function gather(folder: string, found: Inventory = { folders: [], files: [] }): Promise<Inventory> {
  found.folders.push(folder);
  for (const { name, isFile, isDirectory } of await Array.fromAsync(Deno.readDir(folder)).catch(missing) ?? []) {
    const place = `${folder}${separator}${name}`;
    if (isFile) found.files.push(place);
    else if (isDirectory && !isClosed(name)) await gather(place, found);
  }
  return found;
}
