/**
 * The log port, and the adapter that keeps logs in memory.
 *
 * @module
 */
export type * from "./log.ts";
export * from "./memory_log.ts";
export { records } from "./record/records_of.ts";
