/**
 * A Worker that tests the adapters for its D1 database against the laws.
 *
 * @module
 */
import { user } from "@jizai/jizai";
import { type D1, d1KeyValue, d1Store, migrate } from "@jizai/jizai/session/d1";
import { journalLaws, keyValueLaws } from "@jizai/jizai/testing";
import { earlierSqlite, earlierTables, type Query } from "../support/earlier_stores.ts";
import { dying, moveLaws } from "../support/move_laws.ts";

/** Milliseconds that a law may take, however busy the machine is. */
const time = 60_000;

/** Returns the database with empty tables. */
async function emptied(database: D1): Promise<D1> {
  await migrate(database);
  const tables = ["jizai_journal", "jizai_journal_entry", "jizai_journal_event", "jizai_journal_ended", "jizai_value"];
  await database.batch(tables.map((table) => database.prepare(`DELETE FROM ${table}`)));
  return database;
}

/** The operations, by path. */
const tasks: Readonly<Record<string, (database: D1) => Promise<unknown>>> = {
  "/journal_laws": (database) =>
    journalLaws(async (options) => {
      await emptied(database);
      return [1, 2].map(() => d1Store(database, options).journal);
    }, { pass, time }),
  "/key_value_laws": (database) => keyValueLaws(async () => d1KeyValue(await emptied(database)), { pass, time }),
  "/move_laws": (database) =>
    moveLaws(async () => {
      await emptied(database);
      await database.batch([
        ...["", "_piece", "_head", "_entry"].map((name) => `DROP TABLE IF EXISTS jizai_session${name}`),
        ...earlierTables(true),
      ].map((sql) => database.prepare(sql)));
      const query: Query = async (sql, ...values) => {
        const [reply] = await database.batch([database.prepare(sql).bind(...values)]);
        return (reply?.results ?? []) as Awaited<ReturnType<Query>>; // D1 returns rows by column name
      };
      return {
        earlier: earlierSqlite(query, true),
        open(requests) {
          const spend = dying(requests);
          return d1Store({
            prepare: (sql) => database.prepare(sql),
            batch(statements) {
              spend();
              return database.batch(statements);
            },
          });
        },
      };
    }),
  "/race": async (database) => {
    const store = d1Store(await emptied(database));
    const saves = Array.from(
      { length: 20 },
      (_, index) => store.save({ id: "s", version: 0, messages: [user(`${index}`)] }),
    );
    return (await Promise.all(saves)).filter((version) => version !== undefined);
  },
  "/without_schema": async (database) => {
    await database.batch([database.prepare("DROP TABLE IF EXISTS jizai_journal")]);
    return await d1Store(database).load("s").then(() => "loaded", String);
  },
};

/** Stops the clock, and advances it. */
function pass(ms: number): void {
  const now = Date.now() + ms;
  Date.now = () => now;
}

export default {
  async fetch(request: Request, { DB }: { readonly DB: D1 }): Promise<Response> {
    pass(0);
    try {
      return Response.json(await tasks[new URL(request.url).pathname]?.(DB) ?? null);
    } catch (error) {
      return new Response(error instanceof Error ? error.message : String(error), { status: 500 });
    }
  },
};
