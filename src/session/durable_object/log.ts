/**
 * Logs in the storage of a Durable Object.
 *
 * @module
 */
import { expectNames } from "../../protocol/shape.ts";
import { deltasEveryDefault, type Log } from "../log.ts";
import { sqlLog } from "../sql/log.ts";
import { logTables, type SqlStorage } from "../sql/storage.ts";
import type { DurableObjectLogOptions } from "./options.ts";
import { expectStorage } from "./storage.ts";

/**
 * Keeps logs in the storage of a Durable Object. Create it once, in the constructor of the object: an addition notifies the followers of the same instance.
 *
 * ```ts
 * import { durableObjectLog, type ObjectStorage } from "@jizai/jizai/session/durable_object";
 * import type { Log } from "@jizai/jizai/session/log";
 *
 * class Conversation {
 *   readonly log: Log;
 *
 *   constructor(ctx: { readonly storage: ObjectStorage }) {
 *     this.log = durableObjectLog(ctx.storage, { expireIn: 60 * 60 * 1_000 });
 *   }
 * }
 * ```
 */
export function durableObjectLog(storage: SqlStorage, options: DurableObjectLogOptions = {}): Log {
  expectNames("Cannot create durableObjectLog()", options, ["expireIn", "deltasEvery"]);
  const { expireIn = Infinity, deltasEvery = deltasEveryDefault } = options;
  expectStorage(storage);
  storage.transactionSync(() => logTables.forEach((table) => storage.sql.exec(table)));
  return sqlLog(storage, { expireIn, deltasEvery, sweepEvery: Infinity, pollEvery: Infinity });
}
