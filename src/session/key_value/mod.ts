/**
 * The key-value port, and the adapter that keeps texts in memory.
 *
 * @module
 */
export type { IncrementOptions, KeyValue, KeyValueOptions } from "../../protocol/key_value.ts";
export { memoryKeyValue, type MemoryKeyValueOptions } from "./memory.ts";
