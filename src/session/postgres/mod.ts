/**
 * Sessions, logs and texts by key in Postgres, by the driver postgres.js.
 *
 * @module
 */
export { postgresKeyValue } from "./key_value.ts";
export { postgresLog, type PostgresLogOptions } from "./log.ts";
export { migrate, type PostgresOptions, type PostgresSql, schema } from "./sql.ts";
export { postgresStore } from "./store.ts";
