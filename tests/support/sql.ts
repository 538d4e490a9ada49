/**
 * A stand-in for the storage of a Durable Object, on SQLite in memory.
 *
 * @module
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { ObjectStorage } from "@jizai/jizai/session/durable_object";

/** Throws for a text that neither a Durable Object nor D1 stores: they accept 2 MB. */
export function expectStorable(values: readonly (string | number | null)[]): void {
  for (const value of values) {
    if (typeof value === "string" && new TextEncoder().encode(value).length > 2_000_000) {
      throw new Error("string or blob too big: SQLITE_TOOBIG");
    }
  }
}

/** Runs work in a transaction of SQLite, which is rolled back if the work throws. */
export function transact<R>(database: Pick<DatabaseSync, "exec">, work: () => R): R {
  database.exec("BEGIN");
  try {
    const done = work();
    database.exec("COMMIT");
    return done;
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

/** Opens a storage, which is empty by default. Statements are prepared once, as in a Durable Object. */
export function storage(database: DatabaseSync = new DatabaseSync(":memory:")): ObjectStorage {
  const statements = new Map<string, StatementSync>();

  function prepared(query: string): StatementSync {
    const statement = statements.get(query) ?? database.prepare(query);
    statements.set(query, statement);
    return statement;
  }

  return {
    sql: {
      exec(query, ...bindings) {
        expectStorable(bindings);
        return prepared(query).all(...bindings);
      },
    },
    transactionSync: (work) => transact(database, work),
  };
}
