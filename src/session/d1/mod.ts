/**
 * Sessions, logs and texts by key in Cloudflare D1.
 *
 * @module
 */
export type { BatchOptions as D1Options } from "../batch_sql/batch.ts";
export type { BatchLogOptions as D1LogOptions } from "../batch_sql/log.ts";
export { schema, type SqlValue } from "../batch_sql/batch.ts";
export { type D1, d1KeyValue, d1Log, type D1Statement, d1Store, migrate } from "./d1.ts";
