import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { memory, type Session, type Store, type StoreAdapter } from "@jizai/jizai";
import { type Make, storeLaws } from "@jizai/jizai/testing";
import { advanceUntilSettled } from "../support/fake_time.ts";

/** A store that keeps the objects that it receives. */
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
    pending(before, limit) {
      const ended = [...sessions.values()].filter(({ lease }) => lease && lease.until <= before);
      ended.sort((a, b) => (a.lease?.until ?? 0) - (b.lease?.until ?? 0));
      return Promise.resolve(ended.slice(0, limit).map(({ id }) => id));
    },
    touch({ id, version, lease }, until) {
      const session = sessions.get(id);
      const isCurrent = session?.lease && session.version === version && session.lease.until === lease?.until;
      if (session && isCurrent) sessions.set(id, { ...session, lease: { ...session.lease, until } });
      return Promise.resolve(isCurrent === true);
    },
  };
}

/** Creates `memory()` with some methods replaced. */
function but(change: (store: Store) => Partial<Store>): Make<StoreAdapter> {
  return (options) => {
    const store = memory(options);
    return { ...store, ...change(store) };
  };
}

/** Creates a store that changes the texts that it receives. */
function rewriting(change: (text: string) => string): Make<StoreAdapter> {
  return but(({ save }) => ({ save: (session) => save(JSON.parse(change(JSON.stringify(session)))) }));
}

const cases: readonly (readonly [name: string, make: Make<StoreAdapter>, broken: readonly string[]])[] = [
  ["stores the given object", sharing, [
    "copies what it saves and what it returns",
    "deletes what has expired",
    "deletes the lease of what has expired",
  ]],
  ["stores one byte per character", rewriting((text) => text.replace(/[^\0-\xff]/g, "?")), [
    "returns a session as it was saved",
    "returns a long session as it was saved",
    "lists all ids, page by page",
    "finds the sessions whose lease has ended",
  ]],
  ["stores at most 64 KiB", rewriting((text) => text.replace(/(.{65536}).*(".*)$/, "$1$2")), [
    "returns a long session as it was saved",
    "accepts one of several concurrent writers",
    "never returns a partial write",
    "lets one of several processes move a lease",
    "deletes what has expired",
  ]],
  [
    "accepts the last of several writers",
    but(({ load, save }) => ({
      save: async (session) => await save({ ...session, version: (await load(session.id))?.version ?? 0 }),
    })),
    [
      "finds no session that was never saved",
      "refuses a save of another version",
      "returns nothing after a delete",
      "deletes what has expired",
    ],
  ],
  ["does not delete", but(() => ({ delete: () => Promise.resolve() })), [
    "returns nothing after a delete",
    "lists all ids, page by page",
    "finds the sessions whose lease has ended",
  ]],
  [
    "rejects the delete of an unknown session",
    but((store) => ({
      delete: async (id) => await store.load(id) ? await store.delete(id) : Promise.reject(new Error("404")),
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
    "finds the sessions whose lease has ended",
    "moves a lease only for a caller that knows the session",
    "lets one of several processes move a lease",
  ]],
  [
    "finds no lease that has moved",
    but(({ load, pending, touch }) => {
      const moved = new Set<string>();
      return {
        async pending(before, limit) {
          return (await pending(before, limit)).filter((id) => !moved.has(id));
        },
        async touch(session, until) {
          const done = await touch(session, until);
          if (done && await load(session.id)) moved.add(session.id);
          return done;
        },
      };
    }),
    [
      "moves a lease only for a caller that knows the session",
      "lets one of several processes move a lease",
      "deletes the lease of what has expired",
    ],
  ],
  [
    "moves a lease for every process",
    but(({ load, touch }) => ({
      async touch(session, until) {
        const { lease, version = 0 } = await load(session.id) ?? {};
        return await touch({ ...session, version, ...(lease && { lease }) }, until);
      },
    })),
    ["moves a lease only for a caller that knows the session"],
  ],
  ["ignores the limit of a list", but(({ list }) => ({ list: ({ after = "" } = {}) => list({ after }) })), [
    "lists all ids, page by page",
  ]],
  ["never expires", () => memory(), ["deletes what has expired", "deletes the lease of what has expired"]],
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
    load: (id) => id === "counted" ? new Promise(() => {}) : store.load(id),
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
