/**
 * Sessions, logs and texts by key in the SQLite storage of a Durable Object.
 *
 * @module
 */
export { durableObjectKeyValue } from "./key_value.ts";
export { durableObjectLog } from "./log.ts";
export type { ObjectAlarm } from "./alarm.ts";
export type { DurableObjectLogOptions, DurableObjectOptions, DurableObjectStoreOptions } from "./options.ts";
export type { SqlStorage as ObjectStorage } from "../sql/storage.ts";
export { durableObjectStore } from "./store.ts";
