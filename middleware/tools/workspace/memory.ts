/**
 * Files in memory.
 *
 * @module
 */
import { type FileChange, type FileContent, type FileEntry, type Files, ToolError } from "../../../mod.ts";

/**
 * Keeps files in this process, until it ends. `texts` are there from the beginning, by path.
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
  const kept = new Map<string, FileContent>();
  for (const [path, text] of Object.entries(texts)) kept.set(path, { bytes: encoder.encode(text), version: "0" });
  const hearers = new Set<(change: FileChange) => void>();
  const tell = (path: string, change: FileChange["change"]) => hearers.forEach((hear) => hear({ path, change }));

  /** What is beneath a folder, as the names that lead there. */
  function beneath(folder: string): readonly (readonly string[])[] {
    const start = folder === "." ? "" : `${folder}/`;
    return [...kept.keys()].filter((path) => path.startsWith(start)).map((path) => path.slice(start.length).split("/"));
  }

  /** Throws where a file would be in a file, or a folder's name. */
  function expectPlace(path: string): void {
    if (path === "." || beneath(path).length > 0) throw new ToolError(`Cannot write ${path}: it is a folder.`);
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
      const above = path.slice(0, end);
      if (kept.has(above)) throw new ToolError(`Cannot write ${path}: ${above} is a file.`);
    }
  }

  return {
    stat(path) {
      const file = kept.get(path);
      if (file) return Promise.resolve({ type: "file", size: file.bytes.length });
      return Promise.resolve(path === "." || beneath(path).length > 0 ? { type: "folder" } : undefined);
    },
    read(path) {
      const file = kept.get(path);
      return Promise.resolve(file && { ...file, bytes: file.bytes.slice() });
    },
    write: (path, bytes, version) =>
      Promise.try(() => {
        const before = kept.get(path);
        if (before?.version !== version) return undefined;
        expectPlace(path);
        const after = { bytes: bytes.slice(), version: String(++writes) };
        kept.set(path, after);
        tell(path, before ? "change" : "add");
        return after.version;
      }),
    delete(path) {
      if (kept.delete(path)) tell(path, "unlink");
      return Promise.resolve();
    },
    async *list(folder): AsyncGenerator<FileEntry> {
      const types = new Map<string, FileEntry["type"]>();
      for (const [name = "", ...rest] of beneath(folder)) types.set(name, rest.length > 0 ? "folder" : "file");
      for (const [name, type] of types) yield { name, type };
    },
    watch(hear) {
      hearers.add(hear);
      return Promise.resolve(() => Promise.resolve(void hearers.delete(hear)));
    },
  };
}
