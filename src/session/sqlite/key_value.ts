/**
 * Texts by key in an SQLite file.
 *
 * @module
 */
import { sweepEvery } from "../expiry.ts";
import type { KeyValue } from "../../protocol/key_value.ts";
import { sqlKeyValue } from "../sql/key_value.ts";

import { type SqliteDatabase, storageOf } from "./database.ts";

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
  return sqlKeyValue(storageOf(database, ["jizai_value"]), sweepEvery);
}
