/**
 * Resolves paths in a directory on disk, with all links followed, and refuses those that leave it.
 *
 * @module
 */
import fs from "node:fs/promises";
import { sep } from "node:path";
import { ToolError } from "../../../../mod.ts";
import { expectWritable, shown } from "../path.ts";

/** Resolves the paths of one directory. */
export interface Paths {
  /** Returns the real path of the directory itself. */
  root(): Promise<string>;
  /** Returns the real path of `path`, or `undefined` if nothing is there. Throws a `ToolError` if it leaves the directory. */
  find(path: string): Promise<string | undefined>;
  /** Returns the real path of a folder, and creates the folder if it is missing. */
  folder(path: string): Promise<string>;
  /** Returns the path from the root, with `/` between names, of a real path in the directory. */
  fromRoot(place: string): Promise<string>;
}

/** Creates the resolver of `directory`, whose real path is looked up on first use. */
export function pathsIn(directory: string | URL): Paths {
  let known: string | undefined;

  async function root(): Promise<string> {
    return known ??= await fs.realpath(directory);
  }

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

  async function fromRoot(place: string): Promise<string> {
    return place.slice((await root()).length).split(sep).filter((name) => name !== "").join("/");
  }

  return { root, find, folder, fromRoot };
}

/** Creates the error for a path that cannot be used. */
export function refusal(path: string, reason: string): ToolError {
  return new ToolError(`Cannot open ${shown(path)}: ${reason}.`);
}

/** Returns `undefined` if an operation failed because nothing is at its path. Rethrows other errors. */
export function ignoreMissing(error: unknown): undefined {
  if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) throw error;
}

/** Returns `undefined` if an operation failed because something is already at its path. Rethrows other errors. */
export function ignoreExisting(error: unknown): undefined {
  if (codeOf(error) !== "EEXIST") throw error;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
