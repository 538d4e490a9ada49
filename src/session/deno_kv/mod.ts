/**
 * Sessions and texts by key in Deno KV. Values of more than 64 KiB are stored in pieces.
 *
 * @module
 */
export type { DenoKvOptions } from "./commit.ts";
export { denoKvStore } from "./journal.ts";
export { denoKvKeyValue } from "./key_value.ts";
export type { KeyValue } from "../../protocol/key_value.ts";
export type { DeltaOptions } from "../journal_rows.ts";
