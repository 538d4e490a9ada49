/**
 * Sessions, logs and texts by key in an SQLite file: `node:sqlite`, or a driver with the same methods.
 *
 * @module
 */
export { migrate, schema, type SqliteDatabase, type SqliteOptions, type SqliteStatement } from "./database.ts";
export { sqliteKeyValue } from "./key_value.ts";
export { sqliteLog, type SqliteLogOptions } from "./log.ts";
export { sqliteStore } from "./store.ts";
