/**
 * The laws of adapters find what breaks them: `fileLaws()`.
 */
import type { Files } from "@jizai/jizai/middleware/workspace";
import { memoryFiles } from "@jizai/jizai/middleware/workspace";
import { fileLaws } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";

/** Creates `memoryFiles()` with some methods replaced. */
function filesBut(change: (files: Files) => Partial<Files>): () => Files {
  return () => {
    const files = memoryFiles();
    return { ...files, ...change(files) };
  };
}

const fileCases: readonly (readonly [name: string, make: () => Files, broken: readonly string[]])[] = [
  [
    "returns the object that it stores",
    filesBut(({ read }) => {
      const kept = new Map<string, Awaited<ReturnType<Files["read"]>>>();
      return {
        async read(path) {
          const file = await read(path);
          const same = kept.get(path);
          if (same?.version === file?.version) return same;
          kept.set(path, file);
          return file;
        },
      };
    }),
    ["copies what it saves and what it returns"],
  ],
  [
    "stores only texts",
    filesBut(({ write }) => ({
      write: (path, bytes, version) => write(path, new TextEncoder().encode(new TextDecoder().decode(bytes)), version),
    })),
    ["returns a file as it was written"],
  ],
  [
    "accepts the last of several writers",
    filesBut(({ read, write }) => ({
      write: async (path, bytes) => await write(path, bytes, (await read(path))?.version),
    })),
    [
      "finds no file that was never written",
      "refuses a write of another version",
      "returns nothing after a delete",
    ],
  ],
  ["does not delete", filesBut(() => ({ delete: () => Promise.resolve() })), [
    "returns nothing after a delete",
    "reports every change",
  ]],
  [
    "also lists the entries of subfolders",
    filesBut(({ list }) => ({
      async *list(folder) {
        for await (const entry of list(folder)) {
          yield entry;
          if (entry.type === "folder") yield* list(folder === "." ? entry.name : `${folder}/${entry.name}`);
        }
      },
    })),
    ["lists the entries of a folder"],
  ],
  [
    "reports changes after it was unwatched",
    filesBut(({ watch }) => ({
      async watch(receive) {
        await watch?.(receive);
        return () => Promise.resolve();
      },
    })),
    ["reports every change"],
  ],
];

for (const [name, make, broken] of fileCases) {
  Deno.test(`fileLaws() finds an implementation that ${name}`, async () => {
    const { message } = await assertRejects(() => fileLaws(make, { time: 2_000 }), Error);
    assertEquals([...message.matchAll(/^It breaks the law that it (.*):$/gm)].map(([, law = ""]) => law), [...broken]);
  });
}

Deno.test("fileLaws() does not require watch()", async () => {
  await fileLaws(() => {
    const { watch: _, ...files } = memoryFiles();
    return files;
  });
});
