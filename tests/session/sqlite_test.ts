import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { DatabaseSync } from "node:sqlite";
import { user } from "@jizai/jizai";
import { migrate, schema, type SqliteDatabase, sqliteStore } from "@jizai/jizai/session/sqlite";
import { journalLaws } from "@jizai/jizai/testing";
import { journalKey } from "../../src/core/journal.ts";
import { added, begun, ended } from "../support/begun_journal.ts";
import { earlierTables } from "../support/earlier_stores.ts";
import { checkLeasedExpiry, expireIn } from "../support/leased_expiry.ts";

/** Opens an empty database with the schema. */
function open(): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  return database;
}

/** Counts the rows of all tables. */
function rows(database: DatabaseSync): readonly number[] {
  return ["jizai_journal", "jizai_journal_entry", "jizai_journal_event", "jizai_journal_ended"]
    .map((table) => Number(database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows));
}

Deno.test("sqliteStore() keeps the laws of journals", async () => {
  using time = new FakeTime();
  const make = (options: { expireIn?: number }) => {
    const database = open();
    return [1, 2, 3].map(() => sqliteStore(database, options).journal);
  };
  await journalLaws(make, { pass: (ms) => time.tick(ms) });
});

Deno.test("migrate() changes nothing in a database that has the schema", async () => {
  const database = open();
  const session = { id: "s", version: 0, messages: [user("自在鉤")] };
  await sqliteStore(database).save(session);
  migrate(database);
  database.exec(schema);
  assertEquals(await sqliteStore(database).load("s"), { ...session, version: 1 });
});

Deno.test("sqliteStore() reads the sessions of tables with and without leases", async () => {
  for (const columns of ["", ", lease INTEGER"]) {
    const database = new DatabaseSync(":memory:");
    database.exec(
      `CREATE TABLE jizai_session (id TEXT PRIMARY KEY, version INTEGER NOT NULL, expires INTEGER${columns})`,
    );
    database.exec("INSERT INTO jizai_session (id, version) VALUES ('s', 1)");
    database.exec("CREATE TABLE jizai_session_piece (id TEXT, part INTEGER, text TEXT, PRIMARY KEY (id, part))");
    database.exec(`INSERT INTO jizai_session_piece VALUES ('s', 0, '{"messages":[],"id":"s"}')`);
    assertThrows(() => sqliteStore(database), Error, "expected a call of migrate() before");
    migrate(database);
    const store = sqliteStore(database);
    assertEquals([await store.journal.pending(10), await store.list()], [[], ["s"]]);
    assertEquals(await store.load("s"), { id: "s", version: 1, messages: [] });
  }
});

Deno.test("sqliteStore() reads no session of an earlier version that has expired, and deletes its rows", async () => {
  using _time = new FakeTime(1_000_000);
  const database = open();
  for (const table of earlierTables(false)) database.exec(table);
  for (const [id, expires] of [["old", "1000000"], ["kept", "NULL"]]) {
    database.exec(`INSERT INTO jizai_session VALUES ('${id}', 1, ${expires}, 5)`);
    database.exec(`INSERT INTO jizai_session_piece VALUES ('${id}', 0, '{"messages":[],"id":"${id}"}')`);
  }
  const store = sqliteStore(database);
  assertEquals([await store.list(), await store.load("old")], [["kept"], undefined]);
  const left = ["jizai_session", "jizai_session_piece"].map((table) =>
    database.prepare(`SELECT id FROM ${table}`).all().map(({ id }) => id)
  );
  assertEquals(left, [["kept"], ["kept"]]);
  assertEquals(await store.journal.pending(10), [journalKey(undefined, "kept")]);
});

Deno.test("sqliteStore() rejects a database without the schema", () => {
  assertThrows(
    () => sqliteStore(new DatabaseSync(":memory:")),
    Error,
    "Cannot use the database: it does not have the schema; expected a call of migrate() before",
  );
});

Deno.test("sqliteStore() keeps a session while its run renews the lease, and deletes it after that", async () => {
  using time = new FakeTime();
  await checkLeasedExpiry(sqliteStore(open(), { expireIn }), time);
});

Deno.test("sweep() of sqliteStore() leaves no row of what has expired, and no write deletes it", async () => {
  using time = new FakeTime();
  const database = open();
  const { journal } = sqliteStore(database, { expireIn: 1_000 });
  for (const key of ["old", "older"]) {
    await journal.append(key, begun(key));
    await journal.append(key, ended(2, ["2"]));
  }
  assertEquals(rows(database), [2, 2, 4, 2]);
  time.tick(60_000);
  await journal.append("new", begun("new"));
  assertEquals(rows(database), [3, 3, 5, 2]);
  assertEquals([await journal.sweep(1, 0), rows(database)], [1, [2, 2, 3, 1]]);
  assertEquals([await journal.sweep(1, 0), rows(database)], [1, [1, 1, 1, 0]]);
  assertEquals(await journal.sweep(1, 0), 0);
});

Deno.test("sweep() of sqliteStore() packs the events of a run whose process died before it has done so", async () => {
  const database = open();
  const { journal } = sqliteStore(database);
  await journal.append("a", begun("a"));
  const delta = (text: string) => `{"type":"text.delta","turn":1,"part":0,"text":"${text}"}`;
  for (let n = 2; n < 9; n++) await journal.append("a", added(n, [delta(`${n}`)]));
  await journal.append("a", ended(9, ["end"]));
  const page = await journal.read("a", 1, 0);
  assertEquals([await journal.sweep(9, 60_000), rows(database)[2]], [0, 1]);
  assertEquals(await journal.read("a", 1, 0), page);
  const unpacked = () => database.prepare("SELECT unpacked FROM jizai_journal_ended").all();
  assertEquals(unpacked(), [{ unpacked: null }]);
  assertEquals(await journal.sweep(9, 60_000), 0);
});

Deno.test("sweep() of sqliteStore() searches indexes, and scans no table", async () => {
  using time = new FakeTime();
  const database = open();
  const queries = new Set<string>();
  const noting: SqliteDatabase = {
    exec: (sql) => database.exec(sql),
    prepare(sql) {
      queries.add(sql);
      return database.prepare(sql);
    },
  };
  const { journal } = sqliteStore(noting, { expireIn: 1_000 });
  await journal.append("a", begun("a"));
  await journal.append("a", ended(2, ["2"]));
  queries.clear();
  await journal.sweep(9, 0);
  await journal.append("a", ended(3, ["3"]));
  time.tick(60_000);
  await journal.sweep(9, 0);
  const plans = [...queries].filter((sql) => /^(SELECT|DELETE)/.test(sql)).map((sql) =>
    database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail))
  );
  assertEquals(plans.length >= 8, true);
  assertEquals(plans.flat().filter((detail) => /^SCAN (?!json_each)/.test(detail)), []);
});

Deno.test("sqliteStore() commits the appends of one tick of the event loop together, and one that fails fails alone", async () => {
  const database = open();
  const executed: string[] = [];
  const { journal } = sqliteStore({
    prepare: (sql) => database.prepare(sql),
    exec(sql) {
      executed.push(sql);
      database.exec(sql);
    },
  });
  const add = (key: string) => journal.append(key, begun(key)).then((outcome) => outcome?.stored, String);
  executed.splice(0);
  assertEquals(await Promise.all(["a", "b", "c"].map(add)), [true, true, true]);
  assertEquals(executed, ["BEGIN IMMEDIATE", "COMMIT"]);
  database.exec(
    "CREATE TRIGGER bad BEFORE INSERT ON jizai_journal WHEN NEW.key = 'bad' BEGIN SELECT RAISE(ABORT, 'full'); END",
  );
  assertEquals(await Promise.all(["d", "bad", "e"].map(add)), [true, "Error: full", true]);
  const last = await Promise.all(
    ["a", "b", "c", "d", "bad", "e"].map(async (key) => (await journal.read(key, 1, 0))?.last),
  );
  assertEquals(last, [1, 1, 1, 1, undefined, 1]);
});

Deno.test("sqliteStore() waits once for a locked database, however many appends there are", async () => {
  const database = open();
  const executed: string[] = [];
  let locked = false;
  const { journal } = sqliteStore({
    prepare: (sql) => database.prepare(sql),
    exec(sql) {
      executed.push(sql);
      if (locked) throw new Error("database is locked");
      database.exec(sql);
    },
  });
  const add = (key: string) => journal.append(key, begun(key)).then((outcome) => outcome?.stored, String);
  executed.splice(0);
  locked = true;
  assertEquals(await Promise.all(["a", "b", "c"].map(add)), Array(3).fill("Error: database is locked"));
  assertEquals(executed, ["BEGIN IMMEDIATE"]);
  locked = false;
  assertEquals(await Promise.all(["a", "b", "c"].map(add)), [true, true, true]);
});
