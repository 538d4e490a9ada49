import { assert, assertEquals, assertRejects } from "@std/assert";
import postgres from "postgres";
import { agent, serve, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { migrate, postgresKeyValue, type PostgresSql, postgresStore } from "@jizai/jizai/session/postgres";
import { journalLaws, keyValueLaws } from "@jizai/jizai/testing";
import { journalKey } from "../../src/core/journal.ts";
import { earlierPostgres, type Query } from "../support/earlier_stores.ts";
import { dying, moveLaws } from "../support/move_laws.ts";
import { pgbouncer } from "./pgbouncer.ts";
import { isPostgresMissing, postgresServer } from "./postgres_server.ts";
import { beginRun, followed } from "./run_events.ts";

/** Milliseconds that a law may take, however busy the disk is. */
const time = 60_000;

const ignore = await isPostgresMissing();
const without = ignore ? " (left out: Postgres is not installed; `apt-get install postgresql`)" : "";

/** Opens the driver. It ends its connections when it is disposed of. */
function connect(url: string): postgres.Sql & AsyncDisposable {
  const sql = postgres(url, { onnotice: () => {}, fetch_types: false });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 0 }) });
}

/** Returns the driver with empty tables. */
async function emptied(sql: PostgresSql): Promise<PostgresSql> {
  await sql.unsafe("TRUNCATE jizai_journal, jizai_value CASCADE");
  return sql;
}

/** Stops the clock of the adapters, which pass the time to Postgres, and advances it. Timers and connections are real. */
function stoppedClock(): Disposable & { pass(ms: number): void } {
  const { now } = Date;
  let time = now();
  Date.now = () => time;
  return { pass: (ms) => void (time += ms), [Symbol.dispose]: () => void (Date.now = now) };
}

/** A test with a server of its own, which has the schema. */
function onPostgres(name: string, test: (sql: postgres.Sql, url: string) => Promise<void>): void {
  Deno.test({
    name: `on Postgres, ${name}${without}`,
    ignore,
    async fn() {
      await using server = await postgresServer();
      assert(server);
      await using sql = connect(server.url);
      await migrate(sql);
      await test(sql, server.url);
    },
  });
}

onPostgres("postgresStore() keeps the laws of journals, with LISTEN and by polling", async (sql) => {
  using clock = stoppedClock();
  const { pass } = clock;
  const make = async (options: { expireIn?: number }) => {
    await emptied(sql);
    const journals = [true, true, false].map((listen) => postgresStore(sql, { ...options, listen }).journal);
    for (const journal of journals) await journal.head("none"); // they compare the clocks before time passes
    return journals;
  };
  await journalLaws(make, { time, pass });
});

/** Tests that sessions of version 0.1.0 are moved. */
async function checkMoves(sql: PostgresSql): Promise<void> {
  await moveLaws(async () => {
    await emptied(sql);
    await sql.unsafe("DROP TABLE IF EXISTS jizai_session, jizai_session_entry");
    await sql.unsafe(
      'CREATE TABLE jizai_session (id text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, body text NOT NULL, expires bigint, lease bigint)',
    );
    const query: Query = async (statement, ...values) =>
      await sql.unsafe(statement, values) as Awaited<ReturnType<Query>>; // the driver returns rows by column name
    return {
      earlier: earlierPostgres(query),
      open(requests) {
        const spend = dying(requests);
        return postgresStore({
          listen: (...given) => sql.listen(...given),
          unsafe(...given) {
            spend();
            return sql.unsafe(...given);
          },
        });
      },
    };
  });
}

onPostgres("postgresStore() moves the sessions of earlier versions to journals", checkMoves);

onPostgres("postgresKeyValue() keeps the laws of key-value databases", async (sql) => {
  using clock = stoppedClock();
  const { pass } = clock;
  await keyValueLaws(async () => postgresKeyValue(await emptied(sql)), { time, pass });
});

onPostgres("appends to concurrent journals share statements, and one that fails fails alone", async (sql) => {
  const statements: string[] = [];
  const { journal } = postgresStore({
    listen: (...given) => sql.listen(...given),
    unsafe(query, ...given) {
      statements.push(query);
      return sql.unsafe(query, ...given);
    },
  });
  const keys = [...Array.from({ length: 50 }, (_, index) => `r${index}`), "zero"];
  const runs = await Promise.all(keys.map((key) => beginRun(journal, key)));
  const stored = { stored: true, last: 0 };
  statements.length = 0;
  assertEquals(await Promise.all(runs.map((run) => run.add("1"))), runs.map(() => stored));
  assertEquals(statements.length, 1);
  const late = {
    from: { holder: "other", n: 2 },
    to: { holder: "other", n: 3 },
    events: { first: 2, lines: ["other"] },
  };
  const appends = [
    runs[0]?.add("2"),
    journal.append("r0", late),
    runs[1]?.add("2"),
    runs[50]?.add("\0").catch(() => "rejected"), // Postgres stores no zero character
    runs[2]?.add("2"),
  ];
  assertEquals(await Promise.all(appends), [stored, undefined, stored, "rejected", stored]);
  const linesOf = async (key: string) => (await journal.read(key, 1, 0))?.lines;
  assertEquals(await Promise.all(["r0", "r2", "zero"].map(linesOf)), [["1", "2"], ["1", "2"], ["1"]]);
});

const isPooled = !ignore &&
  (await new Deno.Command("sh", { args: ["-c", "command -v pgbouncer"], stdout: "null" }).output()).success;

Deno.test({
  name: `through pgbouncer, the adapters for Postgres keep the laws${
    isPooled ? "" : " (left out: it is not installed; `apt-get install postgresql pgbouncer`)"
  }`,
  ignore: !isPooled,
  async fn() {
    await using server = await postgresServer();
    assert(server);
    await using pooler = await pgbouncer(server.port);
    assert(pooler);
    const sql = postgres(pooler.url, { onnotice: () => {}, prepare: false }); // each transaction may have another connection; the driver reads the types of arrays
    await migrate(sql);
    using clock = stoppedClock();
    const { pass } = clock;
    const polling = { listen: false, pollEvery: 20 };
    const make = async (options: { expireIn?: number }) => {
      const { journal } = postgresStore(await emptied(sql), { ...options, ...polling });
      await journal.head("none"); // it compares the clocks before time passes
      return journal;
    };
    await journalLaws(make, { time, pass });
    await checkMoves(sql);
    await keyValueLaws(async () => postgresKeyValue(await emptied(sql)), { time, pass });
    await sql.end({ timeout: 0 });
  },
});

onPostgres("migrate() can run at once in several processes, and again", async (sql, url) => {
  await sql.unsafe("DROP TABLE jizai_journal, jizai_journal_event CASCADE");
  await using other = connect(url);
  await Promise.all([migrate(sql), migrate(other), migrate(sql), migrate(other)]);
  await postgresStore(sql).save({ id: "s", version: 0, messages: [user("自在鉤\u0000")] });
  await migrate(other);
  assertEquals(await postgresStore(other).load("s"), { id: "s", version: 1, messages: [user("自在鉤\u0000")] });
});

onPostgres("migrate() causes no notice, also where the schema exists", async (_, url) => {
  const notices: string[] = [];
  const sql = postgres(url, { onnotice: ({ message }) => void notices.push(String(message)), fetch_types: false });
  await migrate(sql);
  await migrate(sql);
  await sql.unsafe("CREATE TABLE IF NOT EXISTS jizai_journal ()"); // other statements cause them as before
  assertEquals(notices, ['relation "jizai_journal" already exists, skipping']);
  await sql.end();
});

onPostgres("sessions, keys of requests and values may be kept for a fraction of a millisecond", async (sql) => {
  const app = serve(agent({ model: scripted("Hello!") }), {
    store: postgresStore(sql, { expireIn: 60_000.5 }),
    events: { keep: 60_000.5 },
  });
  const headers = { "content-type": "application/json", "idempotency-key": "k" };
  const ask = () => app.request("/runs", { method: "POST", headers, body: JSON.stringify({ prompt: "Hi" }) });
  const [first, again] = [await (await ask()).text(), await (await ask()).text()];
  assertEquals([first.includes("run.finished"), again], [true, first]);
  const values = postgresKeyValue(sql);
  await values.set("k", "1", { expireIn: 60_000.5 });
  assertEquals([await values.get("k"), await values.increment("n", { expireIn: 60_000.5 })], ["1", 1]);
});

onPostgres("postgresStore() reads the sessions of a table without leases", async (sql) => {
  await sql.unsafe("CREATE TABLE jizai_session (id text PRIMARY KEY, version bigint, body text, expires bigint)");
  await sql.unsafe('INSERT INTO jizai_session VALUES (\'s\', 1, \'{"messages":[],"id":"s"}\')');
  const store = postgresStore(sql);
  assertEquals([await store.journal.pending(10), await store.list()], [[], ["s"]]);
  assertEquals(await store.load("s"), { id: "s", version: 1, messages: [] });
});

onPostgres("20 connections save the same version: one wins", async (sql, url) => {
  await using other = connect(url);
  for (let version = 0; version < 3; version++) {
    const saves = Array.from(
      { length: 20 },
      (_, index) => postgresStore(index % 2 ? sql : other).save({ id: "s", version, messages: [user(`${index}`)] }),
    );
    assertEquals((await Promise.all(saves)).filter((saved) => saved !== undefined), [version + 1]);
  }
});

onPostgres(
  "a follower is notified of events that another process adds, also after its LISTEN connection was lost",
  async (sql, url) => {
    await using other = connect(url);
    const [writer, reader] = [postgresStore(sql), postgresStore(other, { pollEvery: 60_000 })];
    const run = await beginRun(writer.journal, "r");
    await run.add("1");
    const pages = followed(reader.journal, "r");
    assertEquals((await pages.next()).value?.lines, ["1"]);
    for (let after = 1; after < 20; after++) {
      const next = pages.next();
      if (after === 10) {
        await sql.unsafe(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'listen%'",
        );
      }
      await run.add(`${after + 1}`);
      assertEquals((await next).value?.lines, [`${after + 1}`]);
    }
    const end = pages.next();
    await run.end();
    assertEquals((await end).done, true);
  },
);

onPostgres(
  "postgresStore() is notified of changes of other processes, also after its LISTEN connection was lost",
  async (sql, url) => {
    await using other = connect(url);
    const [one, two] = [postgresStore(sql), postgresStore(other)];
    let change = Promise.withResolvers<void>();
    const watcher = { notify: () => change.resolve(), fail: (error: unknown) => change.reject(error) };
    const leave = two.journal.watch(journalKey(undefined, "s"), watcher);
    await change.promise; // it listens
    for (let version = 0; version < 5; version++) {
      change = Promise.withResolvers();
      if (version === 3) {
        await sql.unsafe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'listen%'");
      }
      await one.save({ id: "s", version, messages: [user(`${version}`)] });
      await change.promise;
    }
    leave();
  },
);

onPostgres("a client follows in one process the run that another process executes", async (sql, url) => {
  await using other = connect(url);
  const [one, two] = [sql, other].map((sql) =>
    serve(agent({ model: scripted("Hello!") }), { store: postgresStore(sql) })
  );
  assert(one && two);
  const headers = { "content-type": "application/json" };
  const response = await one.request("/runs", { method: "POST", headers, body: JSON.stringify({ prompt: "Hi" }) });
  const events = await response.text();
  const run = /"run":"([^"]+)"/.exec(events)?.[1];
  assertEquals(await (await two.request(`/runs/${run}?after=0`)).text(), events);
});

Deno.test({
  name: `postgresStore() rejects with the reason if Postgres cannot be reached${without}`,
  ignore,
  async fn() {
    await using sql = connect("postgres://postgres@127.0.0.1:1/postgres");
    await assertRejects(() => postgresStore(sql).load("s"), Error, "ECONNREFUSED");
  },
});

/** Listens as a server of Postgres that accepts each connection, and terminates it at its first statement. */
function terminating(): Deno.TcpListener {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const error = bytes("SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0");
  const accepted = bytes("R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I");
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  async function serve(connection: Deno.TcpConn) {
    await connection.read(new Uint8Array(4_096));
    await connection.write(accepted);
    await connection.read(new Uint8Array(4_096));
    await connection.write(new Uint8Array([...bytes("E"), 0, 0, 0, 4 + error.length, ...error]));
    connection.close();
  }
  void (async () => {
    for await (const connection of listener) void serve(connection).catch(() => connection.close()); // the client has closed it
  })();
  return listener;
}

Deno.test("postgresStore() rejects, and the process goes on, if Postgres terminates a new connection", async () => {
  using listener = terminating();
  await using sql = connect(`postgres://postgres@127.0.0.1:${listener.addr.port}/postgres`);
  await assertRejects(() => postgresStore(sql).load("s"), Error);
});
