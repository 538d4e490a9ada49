import { denoKvKeyValue } from "@jizai/jizai/session/deno_kv";
import { durableObjectKeyValue } from "@jizai/jizai/session/durable_object";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { migrate, sqliteKeyValue } from "@jizai/jizai/session/sqlite";
import { keyValueLaws } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
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
