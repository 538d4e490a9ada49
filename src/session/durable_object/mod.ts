/**
 * Sessions and logs in the SQLite storage of a Durable Object.
 *
 * @module
 */
export { durableObjectLog } from "./log.ts";
export type { DurableObjectOptions, ObjectStorage } from "./storage.ts";
export { durableObjectStore } from "./store.ts";
