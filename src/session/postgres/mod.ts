/**
 * Sessions and logs in Postgres, by the driver postgres.js.
 *
 * @module
 */
export { postgresLog, type PostgresLogOptions } from "./log.ts";
export { migrate, type PostgresOptions, type PostgresSql, schema } from "./sql.ts";
export { postgresStore } from "./store.ts";
