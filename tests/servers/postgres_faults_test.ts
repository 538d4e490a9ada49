import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import postgres from "postgres";
import { user } from "@jizai/jizai";
import { migrate, postgresStore } from "@jizai/jizai/session/postgres";
import { assertAnswers, assertRefuses, assertSurvives, delay, servedOn } from "./faulty_run.ts";
import { isPostgresMissing, type PostgresServer, postgresServer } from "./postgres_server.ts";

const ignore = await isPostgresMissing();
const without = ignore ? " (left out: Postgres is not installed; `apt-get install postgresql`)" : "";

/** Opens the driver. It ends its connections when it is disposed of. It reads no types: if the server closes a connection meanwhile, nothing catches its error. */
function connect(url: string): postgres.Sql & AsyncDisposable {
  const sql = postgres(url, { onnotice: () => {}, connect_timeout: 5, max: 4, fetch_types: false });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 0 }) });
}

/** A test with a server of its own, which has the schema. */
function onPostgres(
  name: string,
  test: (sql: postgres.Sql, server: PostgresServer) => Promise<void>,
  options: { readonly fileKilobytes?: number } = {},
): void {
  Deno.test({
    name: `on Postgres, ${name}${without}`,
    ignore,
    async fn() {
      await using server = await postgresServer(options);
      assert(server);
      await using sql = connect(server.url);
      await migrate(sql);
      await test(sql, server);
    },
  });
}

onPostgres(
  "a run loses and repeats nothing if the server is killed and started again",
  (sql, server) =>
    assertSurvives(postgresStore(sql), async () => {
      await server.control("kill");
      await server.control("start");
    }),
);

onPostgres(
  "a run loses and repeats nothing if its tables are locked for a second",
  (sql) =>
    assertSurvives(postgresStore(sql), async () => {
      await sql.begin(async (transaction) => {
        await transaction.unsafe(
          "LOCK TABLE jizai_journal, jizai_journal_entry, jizai_journal_event IN ACCESS EXCLUSIVE MODE",
        );
        await delay(1_000);
      });
    }),
);

onPostgres(
  "a run loses and repeats nothing if every connection is closed, that of LISTEN too",
  (sql, { url }) =>
    assertSurvives(postgresStore(sql), async () => {
      await using other = connect(url);
      for (let round = 0; round < 5; round++) {
        await other.unsafe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()");
        await delay(100);
      }
    }),
);

onPostgres("a prompt is refused while the server is down, and answered once it is up", async (sql, server) => {
  const served = servedOn(postgresStore(sql));
  await server.control("kill");
  assertMatch(await assertRefuses(served), /ECONNREFUSED|CONNECTION_CLOSED|CONNECTION_ENDED/);
  await server.control("start");
  await assertAnswers(served);
});

onPostgres("a prompt is refused while the database is read-only, with the reason", async (sql) => {
  const served = servedOn(postgresStore(sql));
  const setReadOnly = async (state: "on" | "off") => {
    await sql.unsafe(`ALTER SYSTEM SET default_transaction_read_only = ${state}`);
    await sql.unsafe("SELECT pg_reload_conf()");
    await delay(200);
  };
  await setReadOnly("on");
  assertStringIncludes(await assertRefuses(served), "in a read-only transaction");
  await sql.unsafe("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE");
  await setReadOnly("off");
});

onPostgres("a save that does not fit on the disk is rejected, and changes nothing", async (sql) => {
  const store = postgresStore(sql);
  const session = { id: "s", version: 0, messages: [user("small")] };
  await store.save(session);
  const random = Array.from({ length: 100_000 }, () => crypto.randomUUID()).join(""); // which compression does not shrink
  const texts = Array.from({ length: 10 }, () => user(random.slice(0, 3_000_000)));
  const error = await store.save({ id: "s", version: 1, messages: texts }).then(() => undefined, String);
  assertStringIncludes(error ?? "", "File too large");
  assertEquals(await store.load("s"), { ...session, version: 1 });
}, { fileKilobytes: 20_000 });

onPostgres(
  "a database with an older schema is refused with the reason, until migrate() has changed it",
  async (sql) => {
    const served = servedOn(postgresStore(sql));
    await sql.unsafe("DROP TABLE jizai_journal CASCADE");
    assertStringIncludes(
      await assertRefuses(served),
      "Cannot use Postgres: it does not have the schema; expected a call of migrate() before",
    );
    await migrate(sql);
    await assertAnswers(served);
  },
);
