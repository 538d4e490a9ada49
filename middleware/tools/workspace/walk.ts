import type { FileEntry, Files } from "../../../src/core/kit.ts";
import { isName, join } from "./path.ts";

/** A file or folder that a walk found. */
export interface WalkEntry {
  /** Its path from the root. */
  readonly path: string;
  /** Its type. */
  readonly type: FileEntry["type"];
}

/** Folders that no walk enters: they are large and generated. */
const ignored: readonly string[] = [".git", "node_modules"];

const maxEntries = 10_000;

/**
 * Yields the entries of `folder` by name. If `deep` is set, the entries of a folder follow that folder. Entries that no path can name are left out, and so are
 * those after the first 10,000 of one folder.
 */
export async function* walk(files: Files, folder: string, deep: boolean): AsyncGenerator<WalkEntry> {
  const entries: FileEntry[] = [];
  for await (const entry of files.list(folder)) {
    if (isName(entry.name)) entries.push(entry);
    if (entries.length === maxEntries) break;
  }
  entries.sort((a, b) => a.name < b.name ? -1 : 1);
  for (const { name, type } of entries) {
    const path = join(folder, name);
    yield { path, type };
    if (deep && type === "folder" && !ignored.includes(name)) yield* walk(files, path, deep);
  }
}

/** Returns whether a path is in a folder that no walk enters. */
export function isIgnored(path: string): boolean {
  return path.split("/").some((name) => ignored.includes(name));
}
