/**
 * Sessions and logs in Deno KV, which takes values of at most 64 KiB: what is longer is kept in pieces.
 *
 * @module
 */
export type { DenoKvOptions } from "./commit.ts";
export { denoKvLog } from "./log.ts";
export { denoKvStore } from "./store.ts";
