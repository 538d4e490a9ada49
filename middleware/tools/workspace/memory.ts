/**
 * Keeps files in memory.
 *
 * @module
 */
import { ToolError } from "../../../mod.ts";
import type { FileChange, FileContent, FileEntry, Files } from "../../../src/core/kit.ts";
import { shown } from "./path.ts";

/**
 * Keeps files in the memory of this process. `texts` are the initial files, by path.
 *
 * ```ts
 * import { memoryFiles } from "@jizai/jizai/middleware/workspace";
 * import { assertEquals } from "@std/assert";
 *
 * const files = memoryFiles({ "notes/today.md": "Rest." });
 * const { bytes } = await files.read("notes/today.md") ?? {};
 * assertEquals(new TextDecoder().decode(bytes), "Rest.");
 * ```
 */
export function memoryFiles(texts: Readonly<Record<string, string>> = {}): Files {
  let writes = 0;
  const encoder = new TextEncoder();
  const contents = new Map<string, FileContent>();
  for (const [path, text] of Object.entries(texts)) contents.set(path, { bytes: encoder.encode(text), version: "0" });
  const watchers = new Set<(change: FileChange) => void>();
  const notify = (path: string, change: FileChange["change"]) =>
    watchers.forEach((watcher) => watcher({ path, change }));

  /** Returns the path of each file in a folder, relative to it, as its names. */
  function pathsIn(folder: string): readonly (readonly string[])[] {
    const start = folder === "." ? "" : `${folder}/`;
    return [...contents.keys()].filter((path) => path.startsWith(start)).map((path) =>
      path.slice(start.length).split("/")
    );
  }

  /** Throws a `ToolError` if `path` is a folder, or is in a file. */
  function expectFilePath(path: string): void {
    if (path === "." || pathsIn(path).length > 0) throw new ToolError(`Cannot write ${shown(path)}: it is a folder.`);
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
      const parent = path.slice(0, end);
      if (contents.has(parent)) throw new ToolError(`Cannot write ${shown(path)}: ${shown(parent)} is a file.`);
    }
  }

  function write(path: string, bytes: Uint8Array, version: string | undefined): string | undefined {
    const before = contents.get(path);
    if (before?.version !== version) return undefined;
    expectFilePath(path);
    const after = { bytes: bytes.slice(), version: String(++writes) };
    contents.set(path, after);
    notify(path, before ? "change" : "add");
    return after.version;
  }

  return {
    stat(path) {
      const file = contents.get(path);
      if (file) return Promise.resolve({ type: "file", size: file.bytes.length });
      return Promise.resolve(path === "." || pathsIn(path).length > 0 ? { type: "folder" } : undefined);
    },
    read(path) {
      const file = contents.get(path);
      return Promise.resolve(file && { ...file, bytes: file.bytes.slice() });
    },
    // In a promise, so that a wrong path rejects instead of throwing.
    write: (path, bytes, version) => new Promise((resolve) => resolve(write(path, bytes, version))),
    delete(path) {
      if (contents.delete(path)) notify(path, "unlink");
      return Promise.resolve();
    },
    async *list(folder): AsyncGenerator<FileEntry> {
      const types = new Map<string, FileEntry["type"]>();
      for (const [name = "", ...rest] of pathsIn(folder)) types.set(name, rest.length > 0 ? "folder" : "file");
      for (const [name, type] of types) yield { name, type };
    },
    watch(watcher) {
      watchers.add(watcher);
      return Promise.resolve(() => Promise.resolve(void watchers.delete(watcher)));
    },
  };
}
