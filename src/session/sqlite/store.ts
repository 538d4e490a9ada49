/**
 * Sessions in an SQLite file.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import { sweepEvery } from "../expiry.ts";
import type { Store } from "../../core/store.ts";
import { sqlStore } from "../sql/store.ts";

import { type SqliteDatabase, type SqliteOptions, storageOf } from "./database.ts";

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
  expectNames("Cannot create sqliteStore()", options, ["expireIn"]);
  const { expireIn = Infinity } = options;
  return sqlStore(storageOf(database), { expireIn, sweepEvery });
}
