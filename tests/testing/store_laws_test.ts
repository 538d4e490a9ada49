import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { memory, type Session, type Store, type StoreAdapter } from "@jizai/jizai";
import { type Make, storeLaws } from "@jizai/jizai/testing";
import { advanceUntilSettled } from "../support/fake_time.ts";

/** A store that keeps the very objects that it is given. */
function sharing(): StoreAdapter {
  const sessions = new Map<string, Session>();
  return {
    load: (id) => Promise.resolve(sessions.get(id)),
    save(session) {
      const { id, version } = session;
      if ((sessions.get(id)?.version ?? 0) !== version) return Promise.resolve(undefined);
      sessions.set(id, { ...session, version: version + 1 });
      return Promise.resolve(version + 1);
    },
    delete: (id) => Promise.resolve(void sessions.delete(id)),
    list: ({ after = "", limit = 100 } = {}) =>
      Promise.resolve([...sessions.keys()].filter((id) => id > after).sort().slice(0, limit)),
  };
}

/** Makes a store that is another than `memory()` in some respect. */
function but(change: (store: Store) => Partial<Store>): Make<StoreAdapter> {
  return (options) => {
    const store = memory(options);
    return { ...store, ...change(store) };
  };
}

/** Makes a store that keeps other texts than it was given. */
function rewriting(change: (text: string) => string): Make<StoreAdapter> {
  return but(({ save }) => ({ save: (session) => save(JSON.parse(change(JSON.stringify(session)))) }));
}

const cases: readonly (readonly [name: string, make: Make<StoreAdapter>, broken: readonly string[]])[] = [
  ["keeps what it is given", sharing, ["keeps what it was given from being changed", "forgets what has expired"]],
  ["knows one byte for a character", rewriting((text) => text.replace(/[^\0-\xff]/g, "?")), [
    "gives back what it was given",
    "gives back what is long",
    "lists all ids, page by page",
  ]],
  ["keeps no more than 64 KiB", rewriting((text) => text.replace(/(.{65536}).*(".*)$/, "$1$2")), [
    "gives back what is long",
    "lets one of several writers win",
    "shows nothing in between",
    "forgets what has expired",
  ]],
  [
    "lets the last writer win",
    but(({ load, save }) => ({
      save: async (session) => await save({ ...session, version: (await load(session.id))?.version ?? 0 }),
    })),
    [
      "knows nothing of what it was never given",
      "refuses another version than it keeps",
      "forgets what is deleted",
      "forgets what has expired",
    ],
  ],
  ["does not delete", but(() => ({ delete: () => Promise.resolve() })), [
    "forgets what is deleted",
    "lists all ids, page by page",
  ]],
  [
    "cannot delete what there is not",
    but((store) => ({
      delete: async (id) => await store.load(id) ? await store.delete(id) : Promise.reject(new Error("404")),
    })),
    ["knows nothing of what it was never given"],
  ],
  [
    "lists what it was asked to come after",
    but(({ list }) => ({
      list: async ({ after = "", ...rest } = {}) =>
        after === "" ? await list(rest) : [after, ...await list({ after, ...rest })],
    })),
    ["lists all ids, page by page"],
  ],
  ["lists everything at once", but(({ list }) => ({ list: ({ after = "" } = {}) => list({ after }) })), [
    "lists all ids, page by page",
  ]],
  ["never forgets", () => memory(), ["forgets what has expired"]],
];

for (const [name, make, broken] of cases) {
  Deno.test(`storeLaws() finds a store that ${name}`, async () => {
    using time = new FakeTime();
    const { message } = await assertRejects(() => storeLaws(make, { pass: (ms) => time.tick(ms) }), Error);
    assertEquals([...message.matchAll(/^It breaks the law that it (.*):$/gm)].map(([, law = ""]) => law), [...broken]);
  });
}

Deno.test("storeLaws() says what it saw, and goes on where a store throws or does not answer", async () => {
  using time = new FakeTime();
  const make = but((store) => ({
    load: (id) => id === "counted" ? new Promise(() => {}) : store.load(id),
    delete: (id) => id === "none" ? Promise.reject(new Error("no disk")) : store.delete(id),
  }));
  const { message } = await assertRejects(() => advanceUntilSettled(time, storeLaws(make)), Error);
  assertEquals(message.split("\n"), [
    "It breaks the law that it knows nothing of what it was never given:",
    "- it threw Error: no disk",
    "It breaks the law that it counts the saves of a session:",
    "- it was not done after 10000 ms",
  ]);
});
