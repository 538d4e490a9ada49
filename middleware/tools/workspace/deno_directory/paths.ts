/**
 * Paths in a directory: where they lead, with all links followed, and never out.
 *
 * @module
 */
import { ToolError } from "../../../../mod.ts";

/** What divides names, as this system writes it. */
export const separator: string = Deno.build.os === "windows" ? "\\" : "/";

/** Where the paths of a directory lead. */
export interface Paths {
  /** Where the directory itself is. */
  root(): Promise<string>;
  /** Where a path leads; nothing where nothing is there. Throws a `ToolError` where it leads out. */
  find(path: string): Promise<string | undefined>;
  /** Where a folder is, which is made where it is not there yet. */
  folder(path: string): Promise<string>;
}

/** The paths of `directory`, which is where it is when it is first asked for. */
export function pathsIn(directory: string | URL): Paths {
  let known: string | undefined;

  async function root(): Promise<string> {
    return known ??= await Deno.realPath(directory);
  }

  async function find(path: string): Promise<string | undefined> {
    const start = await root();
    const full = path === "." ? start : `${start}${separator}${path}`;
    const found = await Deno.realPath(full).catch(missing);
    if (found === undefined) {
      if (await Deno.lstat(full).catch(missing)) throw new ToolError("It is a link to nothing.");
      return undefined;
    }
    const within = start.endsWith(separator) ? start : start + separator; // the root of a disk ends in one
    if (found !== start && !found.startsWith(within)) throw new ToolError("It is a link out of the workspace.");
    return found;
  }

  async function folder(path: string): Promise<string> {
    let found = await find(path);
    if (found === undefined) {
      const end = path.lastIndexOf("/");
      const above = await folder(end < 0 ? "." : path.slice(0, end));
      await Deno.mkdir(`${above}${separator}${path.slice(end + 1)}`).catch(existing);
      found = await find(path);
    }
    if (found === undefined) throw new ToolError("Its folder was replaced in the meantime.");
    if (!(await Deno.lstat(found)).isDirectory) throw new ToolError(`There is no folder ${path}, but a file.`);
    return found;
  }

  return { root, find, folder };
}

/** Nothing, where nothing is there. */
export function missing(error: unknown): undefined {
  const { NotFound, NotADirectory, FilesystemLoop } = Deno.errors;
  if (![NotFound, NotADirectory, FilesystemLoop].some((kind) => error instanceof kind)) throw error;
}

/** Nothing, where something is there already. */
export function existing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
}
