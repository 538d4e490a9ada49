import { assertEquals, assertRejects } from "@std/assert";
import type { Files } from "@jizai/jizai/kit";
import { memoryFiles } from "@jizai/jizai/middleware/workspace";
import { fileLaws } from "@jizai/jizai/testing";

/** Makes a place for files that is another than `memoryFiles()` in some respect. */
function but(change: (files: Files) => Partial<Files>): () => Files {
  return () => {
    const files = memoryFiles();
    return { ...files, ...change(files) };
  };
}

const cases: readonly (readonly [name: string, make: () => Files, broken: readonly string[]])[] = [
  [
    "gives out what it keeps",
    but(({ read }) => {
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
    ["keeps what it was given from being changed"],
  ],
  [
    "keeps texts alone",
    but(({ write }) => ({
      write: (path, bytes, version) => write(path, new TextEncoder().encode(new TextDecoder().decode(bytes)), version),
    })),
    ["gives back what it was given"],
  ],
  [
    "lets the last writer win",
    but(({ read, write }) => ({
      write: async (path, bytes) => await write(path, bytes, (await read(path))?.version),
    })),
    [
      "knows nothing of what it was never given",
      "refuses another version than it keeps",
      "forgets what is deleted",
    ],
  ],
  ["does not delete", but(() => ({ delete: () => Promise.resolve() })), [
    "forgets what is deleted",
    "tells of every change",
  ]],
  [
    "lists what is beneath the folders too",
    but(({ list }) => ({
      async *list(folder) {
        for await (const entry of list(folder)) {
          yield entry;
          if (entry.type === "folder") yield* list(folder === "." ? entry.name : `${folder}/${entry.name}`);
        }
      },
    })),
    ["lists what is in a folder"],
  ],
  [
    "goes on telling who does not listen any more",
    but(({ watch }) => ({
      async watch(hear) {
        await watch?.(hear);
        return () => Promise.resolve();
      },
    })),
    ["tells of every change"],
  ],
];

for (const [name, make, broken] of cases) {
  Deno.test(`fileLaws() finds files of which the place ${name}`, async () => {
    const { message } = await assertRejects(() => fileLaws(make, { time: 2_000 }), Error);
    assertEquals([...message.matchAll(/^It breaks the law that it (.*):$/gm)].map(([, law = ""]) => law), [...broken]);
  });
}

Deno.test("fileLaws() asks for no watch where there can be none", async () => {
  await fileLaws(() => {
    const { watch: _, ...files } = memoryFiles();
    return files;
  });
});
