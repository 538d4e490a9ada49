import { denoKvKeyValue } from "@jizai/jizai/session/deno_kv";
import { durableObjectKeyValue } from "@jizai/jizai/session/durable_object";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { migrate, sqliteKeyValue } from "@jizai/jizai/session/sqlite";
import { keyValueLaws } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
import { collectLines, piecesOf, textOfLines } from "../../src/session/pieces.ts";
import { storage } from "../support/sql.ts";

/** Opens an empty database with the schema. */
function open(): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  return database;
}

Deno.test("memoryKeyValue() keeps the laws of key-value databases", async () => {
  using time = new FakeTime();
  await keyValueLaws(() => memoryKeyValue(), { pass: (ms) => time.tick(ms) });
});

Deno.test("denoKvKeyValue() keeps the laws of key-value databases", async () => {
  using kv = await Deno.openKv(":memory:");
  using time = new FakeTime();
  await keyValueLaws(() => denoKvKeyValue(kv, { prefix: crypto.randomUUID() }), { pass: (ms) => time.tick(ms) });
});

Deno.test("durableObjectKeyValue() keeps the laws of key-value databases", async () => {
  using time = new FakeTime();
  await keyValueLaws(() => durableObjectKeyValue(storage()), { pass: (ms) => time.tick(ms) });
});

Deno.test("sqliteKeyValue() keeps the laws of key-value databases", async () => {
  using time = new FakeTime();
  await keyValueLaws(() => sqliteKeyValue(open()), { pass: (ms) => time.tick(ms) });
});

Deno.test("memoryKeyValue() deletes the key that was written longest ago when it is full", async () => {
  const values = memoryKeyValue({ max: 2, maxBytes: 100 });
  for (const key of ["a", "b", "a", "c"]) await values.set(key, key);
  assertEquals(await Promise.all(["a", "b", "c"].map((key) => values.get(key))), ["a", undefined, "c"]);
  await values.set("d", "x".repeat(48));
  assertEquals(await Promise.all(["a", "c", "d"].map((key) => values.get(key))), [
    undefined,
    undefined,
    "x".repeat(48),
  ]);
});

Deno.test("denoKvKeyValue() leaves no pieces of replaced and deleted texts behind", async () => {
  using kv = await Deno.openKv(":memory:");
  const values = denoKvKeyValue(kv);
  const count = async () => (await Array.fromAsync(kv.list({ prefix: [] }))).length;
  await Promise.all(["a", "b", "c"].map((text) => values.set("k", text.repeat(100_000))));
  assertEquals(await count(), 5);
  await values.set("k", "short");
  assertEquals(await count(), 1);
  await values.set("k", "d".repeat(100_000));
  await values.delete("k");
  assertEquals(await count(), 0);
});

Deno.test("sqliteKeyValue() deletes expired keys when it writes, at most once a minute", async () => {
  using time = new FakeTime();
  const database = open();
  const values = sqliteKeyValue(database);
  const keys = () => database.prepare("SELECT key FROM jizai_value ORDER BY key").all().map(({ key }) => key);
  await values.set("a", "", { expireIn: 1_000 });
  time.tick(30_000);
  await values.set("b", "", { expireIn: 1_000 });
  assertEquals(keys(), ["a", "b"]);
  time.tick(30_000);
  await values.set("c", "", { expireIn: 1_000 });
  assertEquals(keys(), ["c"]);
  const plan = database.prepare("EXPLAIN QUERY PLAN DELETE FROM jizai_value WHERE expires <= 1").all();
  assertEquals(plan.filter(({ detail }) => String(detail).startsWith("SCAN")), []);
});

Deno.test("sqliteKeyValue() rejects a database without its table", () => {
  assertThrows(
    () => sqliteKeyValue(new DatabaseSync(":memory:")),
    Error,
    "Cannot use the database: it does not have the schema; expected a call of migrate() before",
  );
});

/** Returns the page read from pieces, `[first, part, text]`. */
function gathered(after: number, ...pieces: readonly (readonly [first: number, part: number, text: string])[]) {
  const collector = collectLines(after);
  const taken = pieces.map(([first, part, text]) => collector.add({ first, part, text }));
  return { taken: taken.filter(Boolean).length, ...collector.lines() };
}

Deno.test("a text is split into pieces, but never within a character", () => {
  assertEquals(piecesOf("", 3), []);
  assertEquals(piecesOf("abcdefg", 3), ["abc", "def", "g"]);
  assertEquals(piecesOf("abcdef", 3), ["abc", "def"]);
  assertEquals(piecesOf("ab😀d😀", 3), ["ab", "😀d", "😀"]);
  assertEquals(piecesOf("ab\ud83d", 3), ["ab\ud83d"]);
});

Deno.test("lines are joined from their pieces, however they were split", () => {
  assertEquals(gathered(0, [1, 0, "a\nb"], [1, 1, "b\nc"], [1, 2, "\n"], [4, 0, "d\n"]), {
    taken: 4,
    first: 1,
    lines: ["a", "bb", "c", "d"],
  });
  assertEquals(gathered(2, [1, 0, "a\nb"], [1, 1, "b\nc"], [1, 2, "\n"], [4, 0, "d\n"]), {
    taken: 4,
    first: 3,
    lines: ["c", "d"],
  });
  assertEquals(gathered(0, [1, 0, textOfLines(["", "a", ""])]), { taken: 1, first: 1, lines: ["", "a", ""] });
  assertEquals(gathered(7), { taken: 0, first: 8, lines: [] });
});

Deno.test("lines after a missing piece are read", () => {
  const d = [4, 0, "d\n"] as const;
  const rest = { first: 4, lines: ["d"] };
  assertEquals(gathered(0, [1, 0, "a\n"], d), { taken: 2, ...rest });
  assertEquals(gathered(0, [1, 1, "b\nc\n"], d), { taken: 2, ...rest });
  assertEquals(gathered(0, [1, 0, "a\nb"], d), { taken: 2, ...rest });
  assertEquals(gathered(0, [1, 0, "a\nb"], [1, 2, "c\n"], d), { taken: 3, ...rest });
  assertEquals(gathered(0, [1, 0, "a\n"], [2, 1, "b\nc\n"], d), { taken: 3, ...rest });
  assertEquals(gathered(0, [1, 0, "a\n"], [2, 0, "b"], [3, 1, "c\n"]), { taken: 3, first: 1, lines: ["a"] });
});

Deno.test("a page ends at its size limit", () => {
  const long = "x".repeat(300_000);
  const page = gathered(0, [1, 0, long], [1, 1, `${long}\n`], [2, 0, "a\n"], [3, 0, "b\n"]);
  assertEquals(page, { taken: 2, first: 1, lines: [`${long}${long}`] });
  assertEquals(gathered(0, [1, 0, `${long}\n`], [2, 0, `${long}\n`], [3, 0, "a\n"]).lines.length, 2);
});
