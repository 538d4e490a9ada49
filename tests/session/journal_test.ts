/**
 * Journals: the laws of the port on each database of this process, and the ids of runs.
 */
import { CapacityError, user } from "@jizai/jizai";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { type Append, journalKey, placeOf, runIdOf } from "../../src/core/journal.ts";
import { memoryJournal } from "../../src/core/memory_journal.ts";
import { batchesIn, sqlJournal } from "../../src/session/batch_sql/journal.ts";
import { denoKvJournal } from "../../src/session/deno_kv/journal.ts";
import { journalTables } from "../../src/session/sql/storage.ts";
import { journalLaws } from "../../src/testing/laws/journal_laws.ts";
import { storage } from "../support/sql.ts";

Deno.test("memoryJournal() keeps the laws of journals", async () => {
  using time = new FakeTime();
  await journalLaws(memoryJournal, { pass: (ms) => time.tick(ms) });
});

Deno.test("sqlJournal() keeps the laws of journals, on SQLite of several instances", async () => {
  using time = new FakeTime();
  const make = (options: { expireIn?: number }) => {
    const database = storage();
    for (const table of journalTables) database.sql.exec(table);
    return [1, 2, 3].map(() => sqlJournal(batchesIn(database), options));
  };
  await journalLaws(make, { pass: (ms) => time.tick(ms) });
});

Deno.test("denoKvJournal() keeps the laws of journals", async () => {
  using kv = await Deno.openKv(":memory:");
  using time = new FakeTime();
  const make = (options: { expireIn?: number }) => {
    const prefix = crypto.randomUUID();
    return [1, 2, 3].map(() => denoKvJournal(kv, { ...options, prefix }));
  };
  await journalLaws(make, { pass: (ms) => time.tick(ms) });
});

Deno.test("the id of a run tells its journal and its number, and does not show its session", () => {
  const key = journalKey("ada", "s1");
  assertEquals(key, journalKey("ada", "s1"));
  assertEquals(/^[\w-]{22}$/.test(key), true);
  const others = [journalKey(undefined, "s1"), journalKey("ad", "as1"), journalKey("s1", "ada")];
  assertEquals(new Set([key, ...others]).size, 4);
  assertEquals(placeOf(runIdOf({ key, run: 12 })), { key, run: 12 });
  for (const id of ["", key, `${key}-0`, `${key}-01`, `${key}-1-1`, `x${key}-1`, `${key}-1e3`, crypto.randomUUID()]) {
    assertEquals(placeOf(id), undefined);
  }
});

/** Returns an append after append `n` of one holder, with an entry and a line of some characters. */
function long(n: number, { run = 1, base = 1, last = n, characters = 1_000 } = {}): Append {
  const text = "x".repeat(characters);
  const state = "running";
  return {
    from: n === 0 ? undefined : { holder: "a", n },
    to: { holder: "a", n: n + 1 },
    created: { session: "s" },
    change: { run, state, base, waiting: 0, head: "{}", last, entries: [{ type: "message", message: user(text) }] },
    events: { first: run === 1 ? n + 1 : n, lines: [text] },
  };
}

Deno.test("memoryJournal() deletes what no run reads before it refuses an append", async () => {
  const journal = memoryJournal({ maxBytes: 20_000, maxOwnerBytes: 20_000 });
  await journal.append("s", long(0));
  for (const n of [1, 2, 3]) await journal.append("s", long(n, { run: 2, base: 4 }));
  assertEquals((await journal.read("s", 1, 0))?.lines.length, 1);
  assertEquals((await journal.entries("s", 1, 9)).length, 4);
  await journal.append("s", long(4, { run: 2, base: 4 }));
  assertEquals(await journal.read("s", 1, 0), undefined);
  assertEquals((await journal.entries("s", 1, 9)).map(([number]) => number), [4, 5]);
  assertEquals((await journal.open("s"))?.entries.length, 2);
  await journal.append("s", long(5, { run: 2, base: 4, characters: 3_000 }));
  const { first, last } = await journal.read("s", 2, 0) ?? {};
  assertEquals([first, last], [4, 5]); // its first events made room
  await assertRejects(() => journal.append("s", long(6, { run: 2, base: 4, characters: 9_000 })), CapacityError);
  assertEquals([(await journal.head("s"))?.mark.n, (await journal.open("s"))?.last], [6, 6]);
  assertEquals((await journal.read("s", 2, 4))?.lines.length, 1);
});

Deno.test("memoryJournal() deletes the session that was changed longest ago, and none with a run", async () => {
  const journal = memoryJournal({ max: 2 });
  const made = (session: string, state: "running" | "over"): Append => {
    const change = { run: 1, state, base: 1, waiting: 0, head: "{}", last: 0, entries: [] };
    return { from: undefined, to: { holder: "a", n: 1 }, created: { session }, change };
  };
  for (const session of ["runs", "runs too"]) await journal.append(session, made(session, "running"));
  for (const session of ["a", "b"]) await journal.append(session, made(session, "over"));
  await journal.append("a", { from: { holder: "a", n: 1 }, to: { holder: "a", n: 2 } });
  await journal.append("c", made("c", "over"));
  assertEquals(await journal.list(), ["a", "c", "runs", "runs too"]);
});
