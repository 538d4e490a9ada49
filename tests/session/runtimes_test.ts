import { memory, type Session } from "@jizai/jizai";
import { denoKvKeyValue, denoKvLog, denoKvStore } from "@jizai/jizai/session/deno_kv";
import { byDatabaseClock, durable } from "@jizai/jizai/session/durable";
import { durableObjectKeyValue, durableObjectLog, durableObjectStore } from "@jizai/jizai/session/durable_object";
import type { LogPage } from "@jizai/jizai/session/log";
import { migrate, sqliteKeyValue, sqliteLog, sqliteStore } from "@jizai/jizai/session/sqlite";
import { storeLaws } from "@jizai/jizai/testing";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { follow, notifier } from "../../src/session/notifier.ts";
import { settled } from "../support/batch.ts";

const until = 2_000_000_000_000;
const session: Session = { id: "s", version: 0, messages: [], lease: { until } };

Deno.test("byDatabaseClock() keeps the laws of stores, whatever the clock of the database", async () => {
  using time = new FakeTime();
  const pass = (ms: number) => time.tick(ms);
  await storeLaws(
    (options) => durable(byDatabaseClock(memory(options), () => Promise.resolve(Date.now() - 7_654_321))),
    { pass },
  );
});

Deno.test("byDatabaseClock() stores the end of a lease by the clock of the database", async () => {
  using time = new FakeTime();
  const database = memory();
  const behind = 600_000; // the clock of this process
  const store = byDatabaseClock(database, () => Promise.resolve(Date.now() + behind));
  assertEquals(await store.save(session), 1);
  assertEquals((await database.load("s"))?.lease, { until: until + behind });
  assertEquals(await store.load("s"), { ...session, version: 1 });
  assertEquals([await store.pending(until - 1, 10), await store.pending(until, 10)], [[], ["s"]]);
  time.tick(1_000);
  assertEquals(await store.touch({ ...session, version: 1 }, until + 1_000), true);
  assertEquals(await database.pending(until + behind + 999, 10), []);
  assertEquals(await database.pending(until + behind + 1_000, 10), ["s"]);
});

Deno.test("byDatabaseClock() keeps a lease that was read before the clock of the process was set", async () => {
  using time = new FakeTime();
  const start = Date.now();
  const database = memory();
  const store = byDatabaseClock(database, () => Promise.resolve(start));
  await store.save(session);
  time.tick(600_000); // the database does not see this time pass
  assertEquals(await store.touch({ ...session, version: 1 }, until + 5), true);
  assertEquals((await store.load("s"))?.lease, { until: until + 5 });
  assertEquals((await database.load("s"))?.lease, { until: until + 5 - 600_000 });
  assertEquals(await store.touch({ ...session, version: 1 }, until + 9), false);
});

Deno.test("byDatabaseClock() keeps its difference if only the network has changed it, and asks the database once a minute", async () => {
  using time = new FakeTime();
  let asked = 0;
  const database = memory();
  const store = byDatabaseClock(database, () => {
    asked++;
    time.tick(40);
    return Promise.resolve(Date.now() - (asked % 2) * 40);
  });
  await store.save(session);
  const first = (await database.load("s"))?.lease;
  await store.load("s");
  assertEquals(asked, 1);
  time.tick(60_000);
  await store.save({ ...session, version: 1 });
  assertEquals([asked, (await database.load("s"))?.lease], [2, first]);
});

/** The database that code without types passes on a runtime that has none. */
const nothing = JSON.parse("null");

Deno.test("the adapters for SQLite say which runtimes have its database", () => {
  for (const adapter of [migrate, sqliteKeyValue, sqliteLog, sqliteStore]) {
    assertThrows(
      () => adapter(nothing),
      TypeError,
      'Cannot use the database: expected a DatabaseSync of "node:sqlite", which Deno and Node 22.13 or later have, ' +
        'or a Database of the package "libsql"',
    );
  }
});

Deno.test("the adapters for Deno KV say which runtime has its database", () => {
  for (const adapter of [denoKvKeyValue, denoKvLog, denoKvStore]) {
    for (const value of [nothing, {}, new Map()]) {
      assertThrows(
        () => adapter(value),
        TypeError,
        'Cannot use the database: expected one that Deno.openKv() opened, on Deno with "unstable": ["kv"]',
      );
    }
  }
});

Deno.test("the adapters for Durable Objects say which runtime has their storage", () => {
  for (const adapter of [durableObjectKeyValue, durableObjectLog, durableObjectStore]) {
    for (const value of [nothing, {}]) {
      assertThrows(
        () => adapter(value),
        TypeError,
        "Cannot use the storage: expected ctx.storage of a Durable Object with SQLite, on Cloudflare Workers",
      );
    }
  }
});

const empty: LogPage = { first: 1, lines: [], last: 0, ended: false };

Deno.test("follow() reads after a notification, and not before", async () => {
  const additions = notifier();
  const leaving = new AbortController();
  let reads = 0;
  const read = () => Promise.resolve(++reads < 3 ? empty : { ...empty, ended: true });
  const pages = Array.fromAsync(follow(0, leaving.signal, read, () => additions.subscribe("r", leaving.signal)));
  await settled();
  assertEquals(reads, 1);
  additions.notify("other");
  await settled();
  assertEquals(reads, 1);
  additions.notify("r");
  additions.notify("r");
  await settled();
  assertEquals(reads, 2);
  additions.notify("r");
  assertEquals(await pages, []);
  assertEquals(reads, 3);
});

Deno.test("follow() reads again after an addition during a read", async () => {
  const additions = notifier();
  const { signal } = new AbortController();
  let reads = 0;
  const read = () => {
    if (++reads === 1) additions.notify("r");
    return Promise.resolve(reads === 1 ? empty : { ...empty, ended: true });
  };
  assertEquals(await Array.fromAsync(follow(0, signal, read, () => additions.subscribe("r", signal))), []);
  assertEquals(reads, 2);
});

Deno.test("follow() looks for additions often while some arrive, and ever more seldom while none do", async () => {
  using time = new FakeTime();
  const additions = notifier(200, 25);
  const leaving = new AbortController();
  const begins = Date.now();
  const looks: number[] = [];
  let last = 0;
  const read = (after: number) => {
    looks.push(Date.now() - begins);
    const lines = Array.from({ length: last - after }, (_, index) => `${after + index + 1}`);
    return Promise.resolve({ first: after + 1, lines, last, ended: false });
  };
  const pages = Array.fromAsync(follow(0, leaving.signal, read, () => additions.subscribe("r", leaving.signal)));
  const advance = async (ms: number) => {
    for (let left = ms; left > 0; left -= 5) await time.tickAsync(5);
  };
  await advance(1_000);
  assertEquals(looks.splice(0), [0, 50, 150, 350, 550, 750, 950]);
  last = 1;
  await advance(150);
  last = 2;
  await advance(15);
  last = 3;
  await advance(200);
  assertEquals(looks.splice(0), [1_150, 1_175, 1_200, 1_250, 1_350]);
  leaving.abort();
  assertEquals((await pages).flatMap(({ lines }) => lines), ["1", "2", "3"]);
});

Deno.test("follow() closes its subscription if a read fails", async () => {
  let closed = 0;
  const subscription = { next: () => Promise.resolve(true), close: () => void closed++ };
  const read = () => Promise.reject(new Error("no disk"));
  const pages = Array.fromAsync(follow(0, new AbortController().signal, read, () => subscription));
  await assertRejects(() => pages, Error, "no disk");
  assertEquals(closed, 1);
});
