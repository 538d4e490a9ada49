/**
 * Texts by key in the storage of a Durable Object.
 *
 * @module
 */
import { sweepEvery } from "../expiry.ts";
import type { KeyValue } from "../../protocol/key_value.ts";
import { sqlKeyValue, valueTables } from "../sql/key_value.ts";
import { type SqlStorage } from "../sql/storage.ts";
import { expectStorage } from "./storage.ts";

/**
 * Keeps texts by key in the storage of a Durable Object. Create it once, in the constructor of the object.
 *
 * ```ts
 * import { durableObjectKeyValue, type ObjectStorage } from "@jizai/jizai/session/durable_object";
 * import type { KeyValue } from "@jizai/jizai/session/key_value";
 *
 * class Conversation {
 *   readonly values: KeyValue;
 *
 *   constructor(ctx: { readonly storage: ObjectStorage }) {
 *     this.values = durableObjectKeyValue(ctx.storage);
 *   }
 * }
 * ```
 */
export function durableObjectKeyValue(storage: SqlStorage): KeyValue {
  expectStorage(storage);
  storage.transactionSync(() => valueTables.forEach((table) => storage.sql.exec(table)));
  return sqlKeyValue(storage, sweepEvery);
}
