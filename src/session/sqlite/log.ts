/**
 * Logs in an SQLite file.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import { sweepEvery } from "../expiry.ts";
import { type DeltaOptions, deltasEveryDefault, type Log } from "../log.ts";
import { sqlLog } from "../sql/log.ts";

import { sharedTransactions } from "../sql/transactions.ts";
import { type SqliteDatabase, type SqliteOptions, storageOf } from "./database.ts";

/** Options of `sqliteLog()`. */
export interface SqliteLogOptions extends SqliteOptions, DeltaOptions {
  /** Milliseconds between two looks for events that other processes have added. Events of this process arrive at once. Default: 100. */
  readonly pollEvery?: number;
}

/**
 * Keeps logs in SQLite. Several processes of one machine can share a file. Throws if the schema is missing: call `migrate()` before.
 *
 * ```ts
 * import { migrate, sqliteLog } from "@jizai/jizai/session/sqlite";
 * import { assertEquals } from "@std/assert";
 * import { DatabaseSync } from "node:sqlite";
 *
 * const database = new DatabaseSync(":memory:", { timeout: 5_000 }); // or a path
 * migrate(database);
 * const log = sqliteLog(database, { expireIn: 60 * 60 * 1_000 });
 * await log.append("r1", { after: 0, lines: [`{"type":"a"}`, `{"type":"b"}`], ended: false });
 * assertEquals(await log.read("r1", 1), { first: 2, lines: [`{"type":"b"}`], last: 2, ended: false });
 * ```
 */
export function sqliteLog(database: SqliteDatabase, options: SqliteLogOptions = {}): Log {
  expectNames("Cannot create sqliteLog()", options, ["expireIn", "pollEvery", "deltasEvery"]);
  const { expireIn = Infinity, pollEvery = 100, deltasEvery = deltasEveryDefault } = options;
  const storage = storageOf(database);
  return sqlLog(storage, { expireIn, deltasEvery, sweepEvery, pollEvery, transact: sharedTransactions(storage) });
}
