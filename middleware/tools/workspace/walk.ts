/**
 * Walks: what is in a folder, and in the folders within it.
 *
 * @module
 */
import type { FileEntry, Files } from "../../../mod.ts";
import { isName, join } from "./path.ts";

/** Something that a walk comes by. */
export interface Found {
  /** Where it is. */
  readonly path: string;
  /** What it is. */
  readonly type: FileEntry["type"];
}

/** Folders that no walk enters: what is in them was written by no person, and there is a lot of it. */
const closed: readonly string[] = [".git", "node_modules"];

/** The most entries of one folder. */
const most = 10_000;

/**
 * What is in `folder`, by name, and where it is `deep` in every folder within it, right after that folder. Whatever no path could name is left out.
 */
export async function* walk(files: Files, folder: string, deep: boolean): AsyncGenerator<Found> {
  const entries: FileEntry[] = [];
  for await (const entry of files.list(folder)) {
    if (isName(entry.name)) entries.push(entry);
    if (entries.length === most) break;
  }
  entries.sort((a, b) => a.name < b.name ? -1 : 1);
  for (const { name, type } of entries) {
    const path = join(folder, name);
    yield { path, type };
    if (deep && type === "folder" && !closed.includes(name)) yield* walk(files, path, deep);
  }
}

/** Whether a path is in a folder that no walk enters. */
export function isClosed(path: string): boolean {
  return path.split("/").some((name) => closed.includes(name));
}
