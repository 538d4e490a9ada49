/**
 * The laws of adapters find what breaks them: `logLaws()` and `fileLaws()`.
 */
import type { Files } from "@jizai/jizai/middleware/workspace";
import { memoryFiles } from "@jizai/jizai/middleware/workspace";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { fileLaws, logLaws, type Make } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../support/fake_time.ts";

/** Creates `memoryLog()` with some methods replaced. */
function logBut(change: (log: Log) => Partial<Log>): Make<Log> {
  return (options) => {
    const log = memoryLog(options);
    return { ...log, ...change(log) };
  };
}

const logCases: readonly (readonly [name: string, make: Make<Log>, broken: readonly string[]])[] = [
  [
    "accepts every addition",
    logBut(({ append, read }) => ({
      append: async (run, addition) =>
        await append(run, { ...addition, after: (await read(run, 0))?.last ?? addition.after }),
    })),
    ["accepts only the next events", "accepts a run whose first events were deleted"],
  ],
  [
    "accepts only a run from its first event",
    logBut(({ append, read }) => ({
      append: async (run, addition) => addition.after > 0 && !await read(run, 0) ? false : await append(run, addition),
    })),
    [
      "accepts a run whose first events were deleted",
      "follows a run whose first events were deleted",
      "deletes what has expired",
    ],
  ],
  [
    "ignores an end without lines",
    logBut(({ append }) => ({
      append: (run, addition) => addition.lines.length > 0 ? append(run, addition) : Promise.resolve(true),
    })),
    [
      "accepts an addition without lines at the beginning and the end of a run",
      "follows a run from a given event to its end",
      "follows a long run",
      "follows a resumed run",
      "yields every event once, also to a slow reader",
    ],
  ],
  [
    "cuts long lines",
    logBut(({ append }) => ({
      append: (run, { lines, ...rest }) => append(run, { ...rest, lines: lines.map((line) => line.slice(0, 65_536)) }),
    })),
    [
      "accepts one of several concurrent writers",
      "returns long events page by page",
      "follows a long run",
    ],
  ],
  ["does not delete", logBut(() => ({ delete: () => Promise.resolve() })), [
    "returns nothing after a delete",
    "ends when the run is deleted",
  ]],
  ["never expires", () => memoryLog(), ["deletes what has expired"]],
  [
    "yields only the present events",
    logBut(({ read }) => ({
      async *tail(run, after) {
        for (let page = await read(run, after); page; page = await read(run, page.first + page.lines.length - 1)) {
          if (page.lines.length === 0) return;
          yield page;
        }
      },
    })),
    [
      "follows a run from a given event to its end",
      "follows a run whose first events were deleted",
      "yields every event once, also to a slow reader",
      "stops when the signal aborts",
    ],
  ],
  ["yields all events to every follower", logBut(({ tail }) => ({ tail: (run, _, signal) => tail(run, 0, signal) })), [
    "follows a run from a given event to its end",
    "ends at once if the run has ended",
    "follows a resumed run",
    "stops when the signal aborts",
  ]],
  [
    "drops events of a large page",
    logBut(({ tail }) => ({
      async *tail(run, after, signal) {
        for await (const page of tail(run, after, signal)) {
          const isLarge = page.lines.join("").length > 100_000;
          yield { ...page, lines: page.lines.slice(isLarge ? 1 : -3) };
        }
      },
    })),
    [
      "follows a long run",
      "yields every event once, also to a slow reader",
    ],
  ],
  [
    "ignores the signal",
    logBut(({ tail }) => ({ tail: (run, after) => tail(run, after, new AbortController().signal) })),
    [
      "stops when the signal aborts",
    ],
  ],
  [
    "does not remove its listener",
    logBut(({ tail }) => ({
      tail(run, after, signal) {
        signal.addEventListener("abort", () => {});
        return tail(run, after, signal);
      },
    })),
    ["removes its listeners from the signal"],
  ],
];

for (const [name, make, broken] of logCases) {
  Deno.test(`logLaws() finds a log that ${name}`, async () => {
    using time = new FakeTime();
    const { message } = await assertRejects(
      () => advanceUntilSettled(time, logLaws(make, { pass: (ms) => time.tick(ms) })),
      Error,
    );
    assertEquals([...message.matchAll(/^It breaks the law that it (.*):$/gm)].map(([, law = ""]) => law), [...broken]);
  });
}

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
