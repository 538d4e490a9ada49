import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
import { user } from "@jizai/jizai";
import { type D1, d1KeyValue, type D1Statement, d1Store, migrate } from "@jizai/jizai/session/d1";
import { journalLaws, keyValueLaws } from "@jizai/jizai/testing";
import { journalKey } from "../../src/core/journal.ts";
import { added, begun } from "../support/begun_journal.ts";
import { checkLeasedExpiry, expireIn } from "../support/leased_expiry.ts";
import { expectStorable } from "../support/sql.ts";

/** A stand-in for D1 on SQLite in memory. A batch is a transaction, and a text has at most 2 MB. */
interface FakeD1 extends D1 {
  readonly database: DatabaseSync;
  /** The statements of each batch. */
  readonly batches: (readonly string[])[];
}

interface FakeStatement extends D1Statement {
  readonly sql: string;
  readonly values: readonly (string | number | null)[];
}

function fakeD1(): FakeD1 {
  const database = new DatabaseSync(":memory:");
  const batches: (readonly string[])[] = [];
  const prepare = (sql: string, values: FakeStatement["values"] = []): FakeStatement => ({
    sql,
    values,
    bind: (...bound) => prepare(sql, bound as FakeStatement["values"]), // the adapters bind nothing else
  });
  return {
    database,
    batches,
    prepare,
    batch(statements) {
      const all = statements as FakeStatement[]; // prepare() has made them
      batches.push(all.map(({ sql }) => sql));
      database.exec("BEGIN");
      try {
        const replies = all.map(({ sql, values }) => {
          expectStorable(values);
          return { results: database.prepare(sql).all(...values) };
        });
        database.exec("COMMIT");
        return Promise.resolve(replies);
      } catch (error) {
        database.exec("ROLLBACK");
        return Promise.reject(error);
      }
    },
  };
}

/** Opens an empty database with the schema. */
async function open(): Promise<FakeD1> {
  const database = fakeD1();
  await migrate(database);
  return database;
}

Deno.test("d1Store() keeps the laws of journals", async () => {
  using time = new FakeTime();
  const make = async (options: { expireIn?: number }) => {
    const database = await open();
    return [1, 2, 3].map(() => d1Store(database, options).journal);
  };
  await journalLaws(make, { pass: (ms) => time.tick(ms) });
});

Deno.test("d1KeyValue() keeps the laws of key-value databases", async () => {
  using time = new FakeTime();
  await keyValueLaws(async () => d1KeyValue(await open()), { pass: (ms) => time.tick(ms) });
});

Deno.test("d1Store() and d1KeyValue() need one batch for each operation", async () => {
  const database = await open();
  database.batches.splice(0);
  const [key, to] = [journalKey(undefined, "s"), { holder: "a", n: 1 }];
  const entries = [{ type: "message" as const, message: user("Hi") }];
  const change = { run: 0, state: "over" as const, base: 1, waiting: 0, head: "{}", last: 0, entries };
  const { journal, load } = d1Store(database);
  await journal.append(key, { from: undefined, to, created: { session: "s" }, change });
  await journal.append(key, { from: to, to: { holder: "a", n: 2 }, change: { ...change, last: 1, entries: [] } });
  await load("s");
  await journal.head(key);
  await journal.append("run", begun("run"));
  await journal.append("run", added(2, ["2"]));
  await journal.read("run", 1, 0);
  await d1KeyValue(database).increment("n");
  assertEquals(database.batches.map(({ length }) => length), [5, 2, 2, 1, 6, 3, 3, 2]);
});

Deno.test("d1Store() keeps a session while its run renews the lease, and deletes it after that", async () => {
  using time = new FakeTime();
  await checkLeasedExpiry(d1Store(await open(), { expireIn }), time);
});

Deno.test("d1KeyValue() deletes expired rows when it writes, without scanning a table", async () => {
  using time = new FakeTime();
  const d1 = await open();
  const values = d1KeyValue(d1);
  await values.set("old", "", { expireIn: 1_000 });
  time.tick(60_000);
  await values.set("new", "");
  assertEquals(d1.database.prepare("SELECT count(*) AS rows FROM jizai_value").get()?.rows, 1);
  const deletions = d1.batches.flat().filter((sql) => sql.includes("LIMIT 500"));
  assertEquals(deletions.length, 2);
  for (const sql of deletions) {
    const plan = d1.database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(1).map(({ detail }) => String(detail));
    assertEquals(plan.filter((detail) => detail.startsWith("SCAN")), []);
  }
});

Deno.test("d1Store() changes nothing if a batch fails", async () => {
  const database = await open();
  const store = d1Store(database);
  await store.save({ id: "s", version: 0, messages: [user("a")] });
  database.database.exec(
    "CREATE TRIGGER full BEFORE INSERT ON jizai_journal_entry BEGIN SELECT RAISE(ABORT, 'disk full'); END",
  );
  await assertRejects(() => store.save({ id: "s", version: 1, messages: [user("b")] }), Error, "disk full");
  assertEquals(await store.load("s"), { id: "s", version: 1, messages: [user("a")] });
});

Deno.test("d1Store() rejects with the reason if the schema is missing", async () => {
  await assertRejects(() => d1Store(fakeD1()).load("s"), Error, "no such table: jizai_journal");
});
