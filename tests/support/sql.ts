/**
 * What a Durable Object has for a storage, in this process.
 *
 * @module
 */
import { DatabaseSync } from "node:sqlite";
import type { ObjectStorage } from "@jizai/jizai/session/durable_object";

/** A storage in memory. */
export function storage(): ObjectStorage {
  const database = new DatabaseSync(":memory:");
  return {
    sql: { exec: (query, ...bindings) => database.prepare(query).all(...bindings) },
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
