/**
 * Sessions and texts by key in an SQLite file: `node:sqlite`, or a driver with the same methods.
 *
 * @module
 */
import { expectMethods } from "../core/lib/options.ts";
import type { Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import { batchesIn, sqlStore } from "./batch_sql/journal.ts";
import type { DeltaOptions } from "./journal_rows.ts";
import { sqlKeyValue, valueTables } from "./sql/key_value.ts";
import { journalTables, schemaText, sharedTransactions, type SqlStorage } from "./sql/storage.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { DeltaOptions } from "./journal_rows.ts";

// The SQLite database that the caller opens, and its schema.

/**
 * The methods of an SQLite database that are used, such as those of `DatabaseSync` of `node:sqlite`. The adapters open transactions, so no other code opens one on the same
 * connection across an `await`.
 */
export interface SqliteDatabase {
  /** Executes statements without bindings. */
  exec(sql: string): unknown;
  /** Prepares one statement. */
  prepare(sql: string): SqliteStatement;
}

/** A prepared statement. */
export interface SqliteStatement {
  /** Executes the statement, and returns its rows. */
  all(...bindings: (string | number | null)[]): readonly unknown[];
  /** Executes a statement without rows. */
  run(...bindings: (string | number | null)[]): unknown;
}

/** Options of the adapters. */
export interface SqliteOptions extends DeltaOptions {
  /**
   * Milliseconds after its last change that an entry expires; for the session of an active run, after the end of its lease.
   * What has expired is not found, and `sweep()` of the app deletes it. Default: never.
   */
  readonly expireIn?: number;
  /** Milliseconds between two looks for changes of other processes. Those of this process are noticed at once. Default: 100. */
  readonly pollEvery?: number;
}

const missing =
  'Cannot use the database: expected a DatabaseSync of "node:sqlite", which Deno and Node 22.13 or later have, ' +
  'or a Database of the package "libsql"';

/** The schema as SQL. It changes nothing in a database that has the schema. */
export const schema: string = /* @__PURE__ */ schemaText(journalTables, valueTables); // bundlers leave out an unused one

/**
 * Creates the tables and indexes that are missing, and turns on the write-ahead log, so that readers in other processes do not block a writer.
 *
 * ```ts
 * import { migrate } from "@jizai/jizai/session/sqlite";
 * import { DatabaseSync } from "node:sqlite";
 *
 * migrate(new DatabaseSync(":memory:"));
 * ```
 */
export function migrate(database: SqliteDatabase): void {
  const storage = wrap(database);
  database.exec("PRAGMA journal_mode = WAL");
  storage.transactionSync(() => {
    for (const statement of [...journalTables, ...valueTables]) storage.sql.exec(statement);
  });
}

/** Returns the storage of a database. Throws if the table is missing. */
function storageOf(database: SqliteDatabase, table: string): SqlStorage {
  const storage = wrap(database);
  try {
    storage.sql.exec(`SELECT 1 FROM ${table} LIMIT 0`);
  } catch (cause) {
    throw new Error("Cannot use the database: it does not have the schema; expected a call of migrate() before", {
      cause,
    });
  }
  return storage;
}

/** Returns a database as a storage. */
function wrap(database: SqliteDatabase): SqlStorage {
  expectMethods(database, ["exec", "prepare"], missing);
  const statements = new Map<string, SqliteStatement>();

  function exec(query: string, ...bindings: readonly (string | number | null)[]) {
    const statement = statements.get(query) ?? database.prepare(query);
    statements.set(query, statement);
    if (query.startsWith("SELECT")) return statement.all(...bindings) as Record<string, unknown>[]; // SQLite returns rows by column name
    statement.run(...bindings);
    return [];
  }

  function transactionSync<T>(work: () => T): T {
    database.exec("BEGIN IMMEDIATE"); // takes the lock at once: a lock that is upgraded later can fail without waiting
    try {
      const done = work();
      database.exec("COMMIT");
      return done;
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  }

  return { sql: { exec }, transactionSync };
}

// Sessions in an SQLite file.

/**
 * Keeps sessions in SQLite. Several processes of one machine can share a file: open it with a `timeout`, so that a writer waits for another. Throws if the
 * schema is missing: call `migrate()` before.
 *
 * ```ts
 * import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
 * import { assertEquals } from "@std/assert";
 * import { DatabaseSync } from "node:sqlite";
 *
 * const database = new DatabaseSync(":memory:", { timeout: 5_000 }); // or a path
 * migrate(database);
 * const store = sqliteStore(database);
 * await store.save({ id: "s1", version: 0, messages: [] });
 * assertEquals(await store.list(), ["s1"]);
 * ```
 */
export function sqliteStore(database: SqliteDatabase, options: SqliteOptions = {}): Store {
  expectNames("Cannot create sqliteStore()", options, ["expireIn", "pollEvery", "deltasEvery"]);
  const storage = storageOf(database, "jizai_journal");
  return sqlStore(batchesIn(storage, sharedTransactions(storage)), { pollEvery: 100, ...options });
}

// Texts by key in an SQLite file.

/**
 * Keeps texts by key in SQLite. Several processes of one machine can share a file. Throws if the schema is missing: call `migrate()` before.
 *
 * ```ts
 * import { migrate, sqliteKeyValue } from "@jizai/jizai/session/sqlite";
 * import { assertEquals } from "@std/assert";
 * import { DatabaseSync } from "node:sqlite";
 *
 * const database = new DatabaseSync(":memory:", { timeout: 5_000 }); // or a path
 * migrate(database);
 * assertEquals(await sqliteKeyValue(database).increment("visits"), 1);
 * ```
 */
export function sqliteKeyValue(database: SqliteDatabase): KeyValue {
  return sqlKeyValue(storageOf(database, "jizai_value"));
}
