/**
 * `journalLaws()` finds what breaks a journal.
 */
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { journalLaws } from "@jizai/jizai/testing";
import { type Append, isSameMark, type Journal } from "../../src/core/journal.ts";
import { memoryJournal } from "../../src/core/memory_journal.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";

/** Changes a journal in memory. */
type Change = (journal: Journal) => Partial<Journal>;

/** Changes the texts that a journal receives. */
function rewriting(change: (text: string) => string): Change {
  return ({ append }) => ({
    append: (key, { change: given, ...addition }) =>
      append(key, {
        ...addition,
        ...(given && {
          change: {
            ...given,
            head: change(given.head),
            entries: given.entries.map((entry) => JSON.parse(change(JSON.stringify(entry)))),
          },
        }),
      }),
  });
}

/** Changes the appends that a journal receives, which knows its stored head. */
function appending(change: (append: Append, head: Awaited<ReturnType<Journal["head"]>>) => Append): Change {
  return ({ append, head }) => ({ append: async (key, given) => await append(key, change(given, await head(key))) });
}

/** The keys of journals that a case has seen. */
const seen = new Set<string>();

const cases: Readonly<Record<string, readonly [change: Change, broken: readonly string[]]>> = {
  "takes an append after any mark": [({ append, head }) => ({
    append: async (key, addition) =>
      append(key, { ...addition, ...(addition.from && { from: (await head(key))?.mark }) }),
  }), [
    "finds no journal that was never created",
    "refuses an append whose mark is not stored, and changes nothing",
    "accepts an append that is repeated, and stores it once",
    "does not take a journal that was deleted and created anew for the one before",
    "does the same as a plain model, whatever several instances do",
    "returns packed events as they were",
    "deletes what has expired",
  ]],
  "refuses an append that is repeated": [({ append, head }) => ({
    async append(key, addition) {
      const { mark } = await head(key) ?? {};
      return mark?.holder === addition.to.holder && mark.n === addition.to.n ? undefined : await append(key, addition);
    },
  }), [
    "accepts an append that is repeated, and stores it once",
    "does the same as a plain model, whatever several instances do",
    "returns packed events as they were",
  ]],
  "stores a change whose writer has not read all mail": [({ append, head }) => ({
    async append(key, { change, ...addition }) {
      const { last = 0 } = await head(key) ?? {};
      return await append(key, { ...addition, ...(change && { change: { ...change, last } }) });
    },
  }), [
    "does the same as a plain model, whatever several instances do",
    "stores nothing of an append whose writer has not read all mail",
    "loses neither posts nor appends that happen at once",
  ]],
  "counts no posts": [({ post }) => ({ post: (key, { most: _, ...addition }) => post(key, addition) }), [
    "does the same as a plain model, whatever several instances do",
    "counts the posts that wait, up to a number",
  ]],
  "loses mail that is posted at the same time": [({ post }) => {
    const posting = new Map<string, ReturnType<Journal["post"]>>();
    return {
      post(key, addition) {
        const done = posting.get(key) ?? post(key, addition).finally(() => posting.delete(key));
        posting.set(key, done);
        return done;
      },
    };
  }, ["counts the posts that wait, up to a number", "loses neither posts nor appends that happen at once"]],
  "packs events to fewer": [({ trim }) => ({ pack: (key, run) => trim(key, run + 1) }), [
    "does the same as a plain model, whatever several instances do",
    "returns packed events as they were",
  ]],
  "returns the keys that are due in any order": [({ pending }) => ({
    pending: async (limit) => (await pending(limit)).toReversed(),
  }), ["finds the journals that are due"]],
  "returns the keys that are due sorted by their names": [({ pending }) => ({
    pending: async (limit, within) => (await pending(99, within)).toSorted().slice(0, limit),
  }), ["finds the journals that are due"]],
  "notifies before it commits": [({ append, watch }) => {
    const watchers = new Set<() => void>();
    return {
      append(key, addition) {
        for (const notify of watchers) notify();
        return append(key, addition);
      },
      watch(key, watcher) {
        watchers.add(watcher.notify);
        const end = watch(key, { ...watcher, notify() {} });
        return () => {
          watchers.delete(watcher.notify);
          end();
        };
      },
    };
  }, ["notifies the watchers of a journal of its changes"]],
  "lists no long names": [({ list }) => ({
    list: async (options) => (await list(options)).filter((name) => name.length < 30),
  }), [
    "does the same as a plain model, whatever several instances do",
    "lists the sessions of an owner, page by page",
  ]],
  "notifies of no post": [({ post, watch }) => {
    let isPosting = false;
    return {
      async post(key, addition) {
        isPosting = true;
        return await post(key, addition).finally(() => isPosting = false);
      },
      watch: (key, watcher) => watch(key, { ...watcher, notify: () => isPosting || watcher.notify() }),
    };
  }, ["notifies the watchers of a journal of its changes"]],
  "keeps nothing longer for a lease": [({ append }) => ({
    append: (key, { due, ...addition }) => append(key, { ...addition, ...(due !== undefined && { due: null }) }),
  }), [
    "does the same as a plain model, whatever several instances do",
    "finds the journals that are due",
    "keeps a journal until its lease has ended",
  ]],
  "stores one byte per character": [rewriting((text) => text.replace(/[^\0-\xff]/g, "?")), [
    "appends entries and replaces the head",
    "keeps entries, heads and events of every length, and many of them",
    "does the same as a plain model, whatever several instances do",
    "returns a session as it was saved",
    "returns a long session as it was saved",
    "returns a transcript that grows, shrinks and changes in the middle as it was saved",
  ]],
  "stores at most 64 KiB": [
    rewriting((text) => text.length > 65_536 ? text.slice(0, 65_000) + text.slice(text.lastIndexOf('"')) : text),
    [
      "keeps entries, heads and events of every length, and many of them",
      "returns a long session as it was saved",
      "accepts one of several concurrent writers",
      "never returns a partial write",
    ],
  ],
  "does not delete": [() => ({ delete: () => Promise.resolve() }), [
    "does not take a journal that was deleted and created anew for the one before",
    "does the same as a plain model, whatever several instances do",
    "notifies the watchers of a journal of its changes",
    "finds the journals that are due",
    "returns nothing after a delete",
    "lists all ids, page by page",
    "returns a transcript that grows, shrinks and changes in the middle as it was saved",
    "returns a session again after another instance has saved it",
  ]],
  "rejects the delete of an unknown journal": [({ head, delete: remove }) => ({
    delete: async (...keys) => {
      const heads = await Promise.all(keys.map(head));
      return await (heads.some((head) => head) ? remove(...keys) : Promise.reject(new Error("404")));
    },
  }), [
    "finds no journal that was never created",
    "does the same as a plain model, whatever several instances do",
    "finds no session that was never saved",
  ]],
  "deletes the first of several journals": [({ delete: remove }) => ({ delete: (key = "") => remove(key) }), [
    "does not take a journal that was deleted and created anew for the one before",
    "returns a transcript that grows, shrinks and changes in the middle as it was saved",
  ]],
  "also lists the session that it should start after": [({ list }) => ({
    list: async ({ after = "", ...rest } = {}) =>
      after === "" ? await list(rest) : [after, ...await list({ after, ...rest })],
  }), ["lists the sessions of an owner, page by page", "lists all ids, page by page"]],
  "ignores the limit of a list": [({ list }) => ({ list: ({ limit: _, ...options } = {}) => list(options) }), [
    "lists all ids, page by page",
  ]],
  "forgets the owner of a session": [({ append }) => ({
    append: (key, { created, ...addition }) =>
      append(key, { ...addition, ...(created && { created: { ...created, owner: undefined } }) }),
  }), [
    "appends entries and replaces the head",
    "does the same as a plain model, whatever several instances do",
    "returns the events of each run after a given event",
    "sweeps the events of runs that are over, in steps, and nothing else",
    "lists the sessions of an owner, page by page",
  ]],
  "sweeps nothing": [() => ({ sweep: () => Promise.resolve(0) }), [
    "does the same as a plain model, whatever several instances do",
    "sweeps the events of runs that are over, in steps, and nothing else",
    "sweeps no event of a run that has begun after another one was over",
  ]],
  "sweeps as much as there is at once": [({ sweep }) => ({ sweep: (_, keep) => sweep(99, keep) }), [
    "sweeps the events of runs that are over, in steps, and nothing else",
  ]],
  "sweeps runs that are over since a moment": [({ sweep }) => ({ sweep: (limit) => sweep(limit, -1) }), [
    "sweeps the events of runs that are over, in steps, and nothing else",
  ]],
  "sweeps the events of runs that are not over": [(journal) => ({
    async sweep(limit, keep) {
      const count = await journal.sweep(limit, keep);
      if (keep > 0) return count;
      for (const key of seen) {
        const { run = 0 } = await journal.head(key) ?? {};
        await journal.trim(key, run + 1);
      }
      return count;
    },
    append(key, addition) {
      seen.add(key);
      return journal.append(key, addition);
    },
  }), [
    "does the same as a plain model, whatever several instances do",
    "sweeps the events of runs that are over, in steps, and nothing else",
    "sweeps no event of a run that has begun after another one was over",
  ]],
  "never expires": [({ append }) => ({
    append: (key, { created, ...addition }) =>
      append(key, { ...addition, ...(created && { created: { ...created, expireIn: Infinity } }) }),
  }), [
    "deletes what has expired",
    "sweeps what has expired, and nothing that was created anew",
    "keeps a journal until its lease has ended",
    "deletes a journal after a time of its own",
  ]],
  "opens a journal after its base": [({ open }) => ({
    async open(key) {
      const opened = await open(key);
      return opened && { ...opened, entries: opened.entries.slice(opened.base > 1 ? 1 : 0) };
    },
  }), ["appends entries and replaces the head", "does the same as a plain model, whatever several instances do"]],
  "opens a journal from its first entry": [({ open, entries }) => ({
    async open(key) {
      const opened = await open(key);
      return opened && { ...opened, entries: await entries(key, 1, opened.last) };
    },
  }), ["appends entries and replaces the head", "does the same as a plain model, whatever several instances do"]],
  "forgets a new base": [
    appending(({ change, ...append }, { base = 1 } = {} as never) => ({
      ...append,
      ...(change && { change: { ...change, base } }),
    })),
    ["appends entries and replaces the head", "does the same as a plain model, whatever several instances do"],
  ],
  "returns one entry too few": [
    ({ entries }) => ({ entries: (key, first, last) => entries(key, first, last - 1) }),
    [
      "appends entries and replaces the head",
      "keeps entries, heads and events of every length, and many of them",
      "does the same as a plain model, whatever several instances do",
      "keeps mail of every length",
      "leaves a session in a newer format alone",
    ],
  ],
  "replaces the head only with an entry": [
    appending(({ change, ...append }, stored) => ({
      ...append,
      ...(change && { change: { ...change, ...(stored && change.entries.length === 0 && { head: stored.head }) } }),
    })),
    [
      "does the same as a plain model, whatever several instances do",
      "returns a transcript that grows, shrinks and changes in the middle as it was saved",
    ],
  ],
  "is no longer due after an append that does not change that": [
    appending(({ due = null, ...append }) => ({ ...append, due })),
    ["does the same as a plain model, whatever several instances do", "finds the journals that are due"],
  ],
  "compares only the number of a mark": [
    appending(({ from, ...append }, stored) => ({
      ...append,
      from: from && { ...from, holder: stored?.mark.holder ?? from.holder },
    })),
    [
      "refuses an append whose mark is not stored, and changes nothing",
      "does not take a journal that was deleted and created anew for the one before",
      "does the same as a plain model, whatever several instances do",
    ],
  ],
  "compares only the holder of a mark": [
    appending(({ from, ...append }, stored) => ({
      ...append,
      from: stored?.mark.holder === from?.holder ? stored?.mark : from,
    })),
    [
      "refuses an append whose mark is not stored, and changes nothing",
      "accepts an append that is repeated, and stores it once",
      "does the same as a plain model, whatever several instances do",
      "returns packed events as they were",
    ],
  ],
  "creates a journal again": [({ append, head, delete: remove }) => ({
    async append(key, addition) {
      const { mark } = await head(key) ?? {};
      if (!addition.from && mark && !isSameMark(mark, addition.to)) await remove(key);
      return await append(key, addition);
    },
  }), ["refuses an append whose mark is not stored, and changes nothing"]],
  "reads the mark before it waits": [({ append, head }) => {
    let waiting = 0;
    return {
      async append(key, addition) {
        const isExpected = isSameMark((await head(key))?.mark, addition.from);
        for (let turns = 9 * waiting++; turns > 0; turns--) await undefined;
        const { mark } = await head(key) ?? {};
        return await append(key, isExpected ? { ...addition, from: mark } : addition).finally(() => waiting--);
      },
    };
  }, ["accepts one of several concurrent writers"]],
  "returns the same lists again": [({ open }) => {
    const known = new Map<string, Awaited<ReturnType<Journal["open"]>>>();
    return {
      async open(key) {
        const opened = await open(key);
        const name = JSON.stringify([key, opened?.mark, opened?.last, opened?.head]);
        if (!known.has(name)) known.set(name, structuredClone(opened));
        return known.get(name);
      },
    };
  }, ["shares nothing with its callers"]],
};

for (const [name, [change, expected]] of Object.entries(cases)) {
  Deno.test(`journalLaws() finds a journal that ${name}`, async () => {
    using time = new FakeTime();
    const make = (options: { expireIn?: number }) => {
      const journal = memoryJournal(options);
      return { ...journal, ...change(journal) };
    };
    const { message } = await assertRejects(() => journalLaws(make, { pass: (ms) => time.tick(ms) }), Error);
    assertEquals(Array.from(message.matchAll(/It breaks the law that it (.*):/g), ([, law]) => law), [...expected]);
  });
}

Deno.test("journalLaws() reports the values, and continues if a journal throws or does not answer", async () => {
  using time = new FakeTime();
  const make = () => {
    const journal = memoryJournal();
    return {
      ...journal,
      delete: (...keys: string[]) =>
        Promise.all(keys.map(journal.head)).then((heads) =>
          heads.some((head) => head) ? journal.delete(...keys) : Promise.reject(new Error("no disk"))
        ),
      entries: (key: string, first: number, last: number) =>
        first === 1_000 ? new Promise<never>(() => {}) : journal.entries(key, first, last),
    };
  };
  const { message } = await assertRejects(() => advanceUntilSettled(time, journalLaws(make)), Error);
  assertEquals(message.split("\n"), [
    "It breaks the law that it finds no journal that was never created:",
    "- it threw Error: no disk",
    "It breaks the law that it keeps entries, heads and events of every length, and many of them:",
    "- it was not done after 10000 ms",
    "It breaks the law that it does the same as a plain model, whatever several instances do:",
    "- it threw Error: no disk",
    "It breaks the law that it finds no session that was never saved:",
    "- it threw Error: no disk",
  ]);
});
