/**
 * Sessions and logs in Deno KV. Values of more than 64 KiB are stored in pieces.
 *
 * @module
 */
export type { DenoKvOptions } from "./commit.ts";
export { denoKvLog } from "./log.ts";
export { denoKvStore } from "./store.ts";
