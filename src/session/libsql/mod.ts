/**
 * Sessions, logs and texts by key in libSQL, such as Turso, with the client `@libsql/client`.
 *
 * @module
 */
export type { BatchOptions as LibsqlOptions } from "../batch_sql/batch.ts";
export type { BatchLogOptions as LibsqlLogOptions } from "../batch_sql/log.ts";
export { schema, type SqlValue } from "../batch_sql/batch.ts";
export { type LibsqlClient, libsqlKeyValue, libsqlLog, libsqlStore, migrate } from "./libsql.ts";
