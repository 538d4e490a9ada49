import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import postgres from "postgres";
import { user } from "@jizai/jizai";
import { migrate, postgresStore } from "@jizai/jizai/session/postgres";
import { assertAnswers, assertRefuses, assertSurvives, delay, servedOn } from "./faulty_run.ts";
import { eventsOf, framesOf, piecesOf, post } from "../support/requests.ts";
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

onPostgres(
  "a run survives a frozen server, and prompts are refused while it is frozen: they have begun nothing, and can be sent again",
  async (sql, server) => {
    const store = postgresStore(sql);
    const { app } = servedOn(store, 60, { storeDeadline: 500 });
    const [{ session } = { session: "" }] = (await eventsOf(post(app, "/runs", { prompt: "Count" })))
      .filter((event) => event.type === "run.started");
    const prompts = [{ prompt: "Again", session }, { prompt: "New" }];
    const pieces = piecesOf(await post(app, "/runs", { prompt: "Count" }));
    const begin = await pieces.until('"5 "');
    await server.control("freeze");
    const refused = await Promise.all(prompts.map((prompt) => post(app, "/runs", prompt))); // they are answered before the thaw
    assertEquals(refused.map(({ status, headers }) => [status, headers.get("retry-after")]), [[503, "2"], [503, "2"]]);
    await server.control("thaw");
    const [events] = await Promise.all([
      pieces.rest().then((rest) => framesOf(begin + rest)),
      ...prompts.map((prompt) => assertAnswers({ app, errors: [] }, prompt)),
    ]);
    assertEquals(events.map(({ id }) => id), events.map((_, index) => index + 1));
    const text = events.map((event) => event.type === "text.delta" ? event.text : "").join("");
    assertEquals(text, Array.from({ length: 60 }, (_, index) => `${index + 1} `).join(""));
    assertEquals(events.at(-1)?.type, "run.finished");
    const sessions = await Promise.all((await store.list()).map((id) => store.load(id)));
    assertEquals(sessions.map((session) => [session?.run, session?.messages.length]).sort(), [
      [undefined, 2],
      [undefined, 2],
      [undefined, 4],
    ]);
  },
);

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
