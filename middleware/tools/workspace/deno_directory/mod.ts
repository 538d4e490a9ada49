/**
 * Files in a directory, on Deno.
 *
 * @module
 */
import { type Files, ToolError } from "../../../../mod.ts";
import { Locks } from "../../../../src/core/kit.ts";
import { contentOf, refill } from "./content.ts";
import { existing, missing, pathsIn, separator } from "./paths.ts";
import { watch } from "./watch.ts";

/** Nobody is told to stop: what is open is closed soon. */
const forever = { aborted: false, reason: undefined, onAbort: () => () => {} };

/**
 * The files of a directory, which has to be there. Takes the permissions to read it and to write it.
 *
 * Links are followed where they stay in the directory, and are in no list. What was opened is looked at once more before a byte of it is read or written,
 * so that a link that is made in between leads nowhere else. Files are locked while they are read and written: of several writers one wins, also where
 * they are processes. They are written in place.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { workspace } from "@jizai/jizai/middleware/workspace";
 * import { denoDirectory } from "@jizai/jizai/middleware/workspace/deno_directory";
 * import { scripted } from "@jizai/jizai/model/scripted";
 *
 * const assistant = agent({ model: scripted("Hello!"), use: [workspace(denoDirectory("./project"))] });
 * ```
 */
export function denoDirectory(directory: string | URL): Files {
  const { root, find, folder } = pathsIn(directory);
  /** So that few wait for the system's lock: each of those holds one of Deno's threads. */
  const locks = new Locks();

  /** What `work` comes to with the file that `open` opens at a path, or nothing where it opens none. */
  function use<T>(path: string, open: () => Promise<Held | undefined>, work: (file: Deno.FsFile) => Promise<T>) {
    return locks.hold(path, forever, async () => {
      const held = await open();
      if (!held) return undefined;
      using file = held.file;
      await file.lock(held.write);
      await expectSame(held);
      return await work(file);
    });
  }

  async function open(path: string, write: boolean): Promise<Held | undefined> {
    const place = await find(path);
    if (place === undefined) return undefined;
    if (!(await Deno.lstat(place)).isFile) throw new ToolError("It is no file."); // a pipe keeps waiting whoever opens it
    return { place, write, file: await Deno.open(place, { read: true, write }) };
  }

  /** Opens a new file; nothing where there is one already. */
  async function create(path: string): Promise<Held | undefined> {
    const end = path.lastIndexOf("/");
    const place = `${await folder(end < 0 ? "." : path.slice(0, end))}${separator}${path.slice(end + 1)}`;
    const file = await Deno.open(place, { read: true, write: true, createNew: true }).catch(existing);
    return file && { place, write: true, isNew: true, file };
  }

  return {
    async stat(path) {
      const place = await find(path);
      const info = place === undefined ? undefined : await Deno.lstat(place).catch(missing);
      if (info?.isDirectory) return { type: "folder" };
      return info?.isFile ? { type: "file", size: info.size } : undefined;
    },
    read: (path) => use(path, () => open(path, false), contentOf),
    write(path, bytes, version) {
      const opened = () => version === undefined ? create(path) : open(path, true);
      return use(path, opened, async (file) => {
        const before = await contentOf(file);
        const expected = version === undefined ? before.bytes.length === 0 : before.version === version;
        return expected ? await refill(file, bytes) : undefined;
      });
    },
    async delete(path) {
      const place = await find(path);
      if (place !== undefined) await Deno.remove(place).catch(missing);
    },
    async *list(path) {
      const place = await find(path);
      if (place === undefined) return;
      const entries = await Array.fromAsync(Deno.readDir(place));
      if (await find(path) !== place) throw new ToolError("It was replaced in the meantime.");
      for (const { name, isFile, isDirectory } of entries) {
        if (isFile || isDirectory) yield { name, type: isFile ? "file" : "folder" };
      }
    },
    watch: async (hear) => watch(await root(), hear),
  };
}

/** A file that was opened. */
interface Held {
  readonly place: string;
  readonly write: boolean;
  readonly isNew?: boolean;
  readonly file: Deno.FsFile;
}

/** Throws a `ToolError` where what was opened is not what is at its place: no link leads there, and it is the same file. */
async function expectSame({ place, isNew, file }: Held): Promise<void> {
  const opened = await file.stat();
  const found = await Deno.realPath(place).catch(missing);
  const there = found === undefined ? undefined : await Deno.lstat(found).catch(missing);
  const isThere = opened.ino === there?.ino && opened.dev === there.dev;
  if (isThere && found === place) return;
  if (isThere && isNew && found !== undefined) await Deno.remove(found); // it was made where a link led
  throw new ToolError("It was replaced in the meantime.");
}
