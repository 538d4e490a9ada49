/**
 * A stand-in for the storage of a Durable Object, on SQLite in memory.
 *
 * @module
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { ObjectStorage } from "@jizai/jizai/session/durable_object";

/** Opens a storage, which is empty by default. Statements are prepared once, as in a Durable Object. */
export function storage(database: DatabaseSync = new DatabaseSync(":memory:")): ObjectStorage {
  const statements = new Map<string, StatementSync>();

  function prepared(query: string): StatementSync {
    const statement = statements.get(query) ?? database.prepare(query);
    statements.set(query, statement);
    return statement;
  }

  return {
    sql: { exec: (query, ...bindings) => prepared(query).all(...bindings) },
    transactionSync(work) {
      database.exec("BEGIN");
      try {
        const done = work();
        database.exec("COMMIT");
        return done;
      } catch (error) {
        database.exec("ROLLBACK");
        throw error;
      }
    },
  };
}
