/**
 * Sessions, logs and texts by key in Deno KV. Values of more than 64 KiB are stored in pieces.
 *
 * @module
 */
export type { DenoKvOptions } from "./commit.ts";
export { denoKvKeyValue, denoKvLog, type DenoKvLogOptions } from "./log.ts";
export { denoKvStore } from "./store.ts";
export type { KeyValue } from "../../protocol/key_value.ts";
export type { DeltaOptions, Log } from "../log.ts";
