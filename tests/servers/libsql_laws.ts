/**
 * The laws for the adapters of libSQL, as a module without packages: `libsql_program.js` imports it bundled.
 *
 * @module
 */
import { type LibsqlClient, libsqlKeyValue, libsqlStore, migrate } from "@jizai/jizai/session/libsql";
import { migrate as migrateFile, type SqliteDatabase, sqliteKeyValue, sqliteStore } from "@jizai/jizai/session/sqlite";
import { journalLaws, keyValueLaws } from "@jizai/jizai/testing";
import { earlierSqlite, earlierTables, type Query } from "../support/earlier_stores.ts";
import { dying, moveLaws } from "../support/move_laws.ts";

/** Stops the clock, and advances it. */
function pass(ms: number): void {
  const now = Date.now() + ms;
  Date.now = () => now;
}

/** Tests the adapters. `openClient` opens a new database with `@libsql/client`, and `openDriver` with the driver `libsql`. */
export async function checkLaws(openClient: () => LibsqlClient, openDriver: () => SqliteDatabase): Promise<void> {
  async function client() {
    const opened = openClient();
    await migrate(opened);
    return opened;
  }
  function driver() {
    const opened = openDriver();
    migrateFile(opened);
    return opened;
  }
  pass(0);
  const options = { pass, time: 60_000 };
  await journalLaws(async (given) => {
    const database = await client();
    return [1, 2].map(() => libsqlStore(database, given).journal);
  }, options);
  await moveLaws(async () => {
    const database = await client();
    await database.batch(earlierTables(true).map((sql) => ({ sql, args: [] })), "write");
    const query: Query = async (sql, ...args) => {
      const [reply] = await database.batch([{ sql, args }], "write");
      return (reply?.rows ?? []) as Awaited<ReturnType<Query>>; // the client returns rows by column name
    };
    const limited = (requests?: number): LibsqlClient => {
      const spend = dying(requests);
      return {
        batch(...given) {
          spend();
          return database.batch(...given);
        },
      };
    };
    return { earlier: earlierSqlite(query, true), open: (requests) => libsqlStore(limited(requests)) };
  });
  await keyValueLaws(async () => libsqlKeyValue(await client()), options);
  await journalLaws((given) => {
    const database = driver();
    return [1, 2].map(() => sqliteStore(database, given).journal);
  }, options);
  await keyValueLaws(() => sqliteKeyValue(driver()), options);
}
