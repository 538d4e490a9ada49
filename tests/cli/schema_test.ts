import { main, type Terminal } from "@jizai/jizai/cli";
import { schema as postgres } from "@jizai/jizai/session/postgres";
import { sqliteKeyValue, sqliteLog, sqliteStore } from "@jizai/jizai/session/sqlite";
import { assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";

/** Runs `jizai schema`, and returns its exit code and output. */
async function schemaOf(database: string): Promise<readonly [number, string]> {
  let screen = "";
  const terminal: Terminal = {
    write: (text) => void (screen += text),
    ask: () => Promise.resolve(undefined),
    onInterrupt() {},
    close() {},
  };
  return [await main(["schema", database], terminal), screen];
}

/** Returns the names of the tables and indexes that a schema creates. It is executed twice, since a schema changes nothing where it exists. */
function namesIn(schema: string): readonly unknown[] {
  const database = new DatabaseSync(":memory:");
  database.exec(schema);
  database.exec(schema);
  return database.prepare("SELECT name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").all().map(({ name }) =>
    name
  );
}

const names = [
  "jizai_log",
  "jizai_log_expires",
  "jizai_log_piece",
  "jizai_session",
  "jizai_session_expires",
  "jizai_session_lease",
  "jizai_session_piece",
  "jizai_value",
  "jizai_value_expires",
];

Deno.test("jizai schema prints SQL that creates the tables and indexes of sqlite, d1 and libsql", async () => {
  for (const database of ["sqlite", "d1", "libsql"]) {
    const [code, schema] = await schemaOf(database);
    assertEquals([code, namesIn(schema)], [0, names]);
  }
});

Deno.test("the schema that jizai prints for sqlite is the one that the adapters need", async () => {
  const database = new DatabaseSync(":memory:");
  database.exec((await schemaOf("sqlite"))[1]);
  await sqliteStore(database).save({ id: "s", version: 0, messages: [] });
  await sqliteLog(database).append("r", { after: 0, lines: ["1"], ended: true });
  assertEquals(await sqliteKeyValue(database).increment("n"), 1);
});

Deno.test("jizai schema prints the schema that migrate() executes on Postgres", async () => {
  assertEquals(await schemaOf("postgres"), [0, postgres]);
});

Deno.test("jizai schema fails for an unknown database", async () => {
  assertEquals(await schemaOf("oracle"), [
    1,
    'Cannot print the schema of "oracle": expected one of d1, libsql, postgres, sqlite\n',
  ]);
});
