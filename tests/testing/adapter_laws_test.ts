/**
 * The laws of adapters find what breaks them: `storeLaws()`, `logLaws()` and `fileLaws()`.
 */
import { memory, type Store } from "@jizai/jizai";
import type { StoreAdapter } from "@jizai/jizai/session/durable";
import type { Files } from "@jizai/jizai/middleware/workspace";
import { memoryFiles } from "@jizai/jizai/middleware/workspace";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { fileLaws, logLaws, type Make, storeLaws } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../support/fake_time.ts";

/** Creates `memory()` with some methods replaced. */
function but(change: (store: Store) => Partial<Store>): Make<StoreAdapter> {
  return (options) => {
    const store = memory(options);
    return { ...store, ...change(store) };
  };
}

/** Creates a store that deletes a session after its last change, although its lease has not ended. */
const ignoringLeases: Make<StoreAdapter> = ({ expireIn = Infinity }) => {
  const store = memory({ expireIn });
  const expiries = new Map<string, number>();
  const renew = (id: string) => void expiries.set(id, Date.now() + expireIn);
  const isLive = (id: string) => (expiries.get(id) ?? 0) > Date.now();
  return {
    ...store,
    head: (id) => isLive(id) ? store.head(id) : Promise.resolve(undefined),
    open: (id) => isLive(id) ? store.open(id) : Promise.resolve(undefined),
    append(id, addition) {
      renew(id);
      return store.append(id, addition);
    },
    touch(session, until) {
      renew(session.id);
      return store.touch(session, until);
    },
  };
};

/** Creates a store that changes the texts that it receives. */
function rewriting(change: (text: string) => string): Make<StoreAdapter> {
  return but(({ append }) => ({
    append: (id, { head, entries, ...addition }) =>
      append(id, {
        ...addition,
        head: change(head),
        entries: entries.map((entry) => JSON.parse(change(JSON.stringify(entry)))),
      }),
  }));
}

const cases: readonly (readonly [name: string, make: Make<StoreAdapter>, broken: readonly string[]])[] = [
  ["stores one byte per character", rewriting((text) => text.replace(/[^\0-\xff]/g, "?")), [
    "returns a session as it was saved",
    "returns a long session as it was saved",
    "appends entries, and replaces the head",
    "stores the lease only with a save that moves it",
    "refuses an append whose mark is not stored, and changes nothing",
    "accepts an append that is repeated, and stores it once",
    "does not take a session that was deleted and saved anew for the one before",
    "accepts one of several appends at once",
    "keeps entries of every length, and many of them",
    "returns a transcript that grows, shrinks and changes in the middle as it was saved",
  ]],
  [
    "stores at most 64 KiB",
    rewriting((text) => text.length > 65_536 ? text.slice(0, 65_000) + text.slice(text.lastIndexOf('"')) : text),
    [
      "returns a long session as it was saved",
      "accepts one of several concurrent writers",
      "never returns a partial write",
      "keeps entries of every length, and many of them",
      "lets one of several processes move a lease",
      "deletes what has expired",
      "keeps a session until its lease has ended",
    ],
  ],
  [
    "accepts the last of several writers",
    but(({ head, append }) => ({
      append: async (id, addition) => await append(id, { ...addition, from: (await head(id))?.mark }),
    })),
    [
      "refuses an append whose mark is not stored, and changes nothing",
      "accepts an append that is repeated, and stores it once",
      "does not take a session that was deleted and saved anew for the one before",
    ],
  ],
  ["does not delete", but(() => ({ delete: () => Promise.resolve() })), [
    "returns nothing after a delete",
    "lists all ids, page by page",
    "does not take a session that was deleted and saved anew for the one before",
    "returns a transcript that grows, shrinks and changes in the middle as it was saved",
    "returns a session again after another instance has saved it",
    "finds the sessions whose lease has ended",
  ]],
  [
    "rejects the delete of an unknown session",
    but((store) => ({
      delete: async (id) => await store.head(id) ? await store.delete(id) : Promise.reject(new Error("404")),
    })),
    ["finds no session that was never saved"],
  ],
  [
    "also lists the id that it should start after",
    but(({ list }) => ({
      list: async ({ after = "", ...rest } = {}) =>
        after === "" ? await list(rest) : [after, ...await list({ after, ...rest })],
    })),
    ["lists all ids, page by page"],
  ],
  ["leases every session", but(({ list }) => ({ pending: (_, limit) => list({ limit }) })), [
    "stores the lease only with a save that moves it",
    "refuses an append whose mark is not stored, and changes nothing",
    "finds the sessions whose lease has ended",
    "moves a lease only for a caller that knows the session",
    "lets one of several processes move a lease",
  ]],
  [
    "finds no lease that has moved",
    but(({ head, pending, touch }) => {
      const moved = new Set<string>();
      return {
        async pending(before, limit) {
          return (await pending(before, limit)).filter((id) => !moved.has(id));
        },
        async touch(session, until) {
          const done = await touch(session, until);
          if (done && await head(session.id)) moved.add(session.id);
          return done;
        },
      };
    }),
    [
      "moves a lease only for a caller that knows the session",
      "lets one of several processes move a lease",
      "deletes the lease of what has expired",
      "keeps a session until its lease has ended",
    ],
  ],
  [
    "moves a lease for every process",
    but(({ head, touch }) => ({
      async touch(session, until) {
        const { until: end, mark } = await head(session.id) ?? {};
        return await touch({ ...session, version: mark?.n ?? 0, ...(end && { lease: { until: end } }) }, until);
      },
    })),
    ["moves a lease only for a caller that knows the session"],
  ],
  ["ignores the limit of a list", but(({ list }) => ({ list: ({ after = "" } = {}) => list({ after }) })), [
    "lists all ids, page by page",
  ]],
  ["never expires", () => memory(), [
    "deletes what has expired",
    "deletes the lease of what has expired",
    "keeps a session until its lease has ended",
  ]],
  ["deletes a session during its lease", ignoringLeases, [
    "keeps a session until its lease has ended",
  ]],
];

for (const [name, make, broken] of cases) {
  Deno.test(`storeLaws() finds a store that ${name}`, async () => {
    using time = new FakeTime();
    const { message } = await assertRejects(() => storeLaws(make, { pass: (ms) => time.tick(ms) }), Error);
    assertEquals([...message.matchAll(/^It breaks the law that it (.*):$/gm)].map(([, law = ""]) => law), [...broken]);
  });
}

Deno.test("storeLaws() reports the values, and continues if a store throws or does not answer", async () => {
  using time = new FakeTime();
  const make = but((store) => ({
    open: (id) => id === "counted" ? new Promise(() => {}) : store.open(id),
    delete: (id) => id === "none" ? Promise.reject(new Error("no disk")) : store.delete(id),
  }));
  const { message } = await assertRejects(() => advanceUntilSettled(time, storeLaws(make)), Error);
  assertEquals(message.split("\n"), [
    "It breaks the law that it finds no session that was never saved:",
    "- it threw Error: no disk",
    "It breaks the law that it counts the saves of a session:",
    "- it was not done after 10000 ms",
  ]);
});

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
