/**
 * Sessions in the storage of a Durable Object.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import type { Store } from "../../core/store.ts";
import { addSessionTables, type SqlStorage } from "../sql/storage.ts";
import { sqlStore } from "../sql/store.ts";
import { alarmed } from "./alarm.ts";
import type { DurableObjectStoreOptions } from "./options.ts";
import { expectStorage } from "./storage.ts";

/**
 * Keeps sessions in the storage of a Durable Object. Create it once, in the constructor of the object. A save writes the rows that have changed: the last
 * ones if a transcript has grown.
 *
 * ```ts
 * import type { Store } from "@jizai/jizai";
 * import { durableObjectStore, type ObjectStorage } from "@jizai/jizai/session/durable_object";
 *
 * class Conversation {
 *   readonly store: Store;
 *
 *   constructor(ctx: { readonly storage: ObjectStorage }) {
 *     this.store = durableObjectStore(ctx.storage);
 *   }
 * }
 * ```
 */
export function durableObjectStore(storage: SqlStorage, options: DurableObjectStoreOptions = {}): Store {
  expectNames("Cannot create durableObjectStore()", options, ["expireIn", "alarm"]);
  const { expireIn = Infinity, alarm } = options;
  expectStorage(storage);
  storage.transactionSync(() => addSessionTables(storage));
  const store = sqlStore(storage, { expireIn, sweepEvery: Infinity });
  return alarm ? alarmed(store, alarm) : store;
}
