/**
 * Sessions, logs and texts by key in Deno KV. Values of more than 64 KiB are stored in pieces.
 *
 * @module
 */
export type { DenoKvOptions } from "./commit.ts";
export { denoKvKeyValue, denoKvLog, type DenoKvLogOptions } from "./log.ts";
export { denoKvStore } from "./journal.ts";
