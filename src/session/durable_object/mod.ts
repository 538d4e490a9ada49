/**
 * Sessions and logs in the SQLite storage of a Durable Object.
 *
 * @module
 */
export { durableObjectLog } from "./log.ts";
export type { DurableObjectOptions } from "./options.ts";
export type { SqlStorage as ObjectStorage } from "../sql/storage.ts";
export { durableObjectStore } from "./store.ts";
