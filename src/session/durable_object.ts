/**
 * Sessions, logs and texts by key in the SQLite storage of a Durable Object.
 *
 * @module
 */
import { sessionsOf } from "../core/session_version.ts";
import type { Addition, Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import { expectMethods, sweepEvery } from "./expiry.ts";
import { type DeltaOptions, deltasEveryDefault, type Log } from "./log.ts";
import { sqlKeyValue, valueTables } from "./sql/key_value.ts";
import { sqlLog } from "./sql/log.ts";
import { addSessionTables, logTables, type SqlStorage } from "./sql/storage.ts";
import { sqlStore } from "./sql/store.ts";
export type { SqlStorage as ObjectStorage } from "./sql/storage.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { DeltaOptions, Log } from "./log.ts";

// The storage of a Durable Object.

/** Throws a `TypeError` if a value is not the storage of a Durable Object. */
function expectStorage(storage: SqlStorage): void {
  const message = "Cannot use the storage: expected ctx.storage of a Durable Object with SQLite, on Cloudflare Workers";
  expectMethods(storage, ["transactionSync"], message);
}

// Options of the adapters for Durable Objects.

/** Options of `durableObjectStore()` and `durableObjectLog()`. */
export interface DurableObjectOptions {
  /**
   * Milliseconds after its last change that an entry expires; for the session of an active run, after the end of its lease.
   * Expired entries are deleted when the object starts. Default: never.
   */
  readonly expireIn?: number;
}

/** Options of `durableObjectLog()`. */
export interface DurableObjectLogOptions extends DurableObjectOptions, DeltaOptions {}

/** Options of `durableObjectStore()`. */
export interface DurableObjectStoreOptions extends DurableObjectOptions {
  /**
   * The object's `ctx.storage`. The store sets its alarm while a run has a lease, so that a killed object starts again. The class needs
   * `alarm() { return app.recover().then(({ over }) => over); }`. Default: the object starts with the next request.
   */
  readonly alarm?: ObjectAlarm;
}

// The alarm of a Durable Object as a waker: it rings at the end of the next lease, so that an object that was killed starts again.

/** The part of a Durable Object's `ctx.storage` that sets its alarm. The class needs a function `alarm()`. */
export interface ObjectAlarm {
  /** Sets the alarm to a time, in milliseconds since 1970. */
  setAlarm(at: number): Promise<void>;
  /** Deletes the alarm. */
  deleteAlarm(): Promise<void>;
}

/**
 * Returns a store that keeps an alarm set while a session has a lease. The alarm is set once for each lease, not for each save: a run that lives sets the
 * next one when it renews its lease. A recovery sets it for the first lease that has not ended yet, also if it finds ended ones.
 */
function alarmed(store: Store, alarm: ObjectAlarm): Store {
  let due: number | undefined;

  async function set(until: number): Promise<void> {
    if (due !== undefined && due > Date.now() && due <= until) return;
    due = until;
    await alarm.setAlarm(until);
  }

  /** Sets the alarm for the first lease that ends after now. An alarm for an ended lease would ring at once, again and again. */
  async function setForNext(): Promise<void> {
    const ended = new Set(await store.pending(Date.now(), Number.MAX_SAFE_INTEGER));
    const first = await store.pending(Number.MAX_SAFE_INTEGER, ended.size + 1);
    const id = first.find((id) => !ended.has(id));
    const until = id === undefined ? undefined : (await store.head(id))?.until;
    if (typeof until === "number") await set(until);
  }

  async function clear(): Promise<void> {
    if (due === undefined || (await store.pending(Number.MAX_SAFE_INTEGER, 1)).length > 0) return;
    due = undefined;
    await alarm.deleteAlarm();
  }

  const appending = {
    ...store,
    async append(id: string, addition: Addition) {
      const isStored = await store.append(id, addition);
      const { until } = addition;
      if (isStored && until !== undefined) await (until === null ? clear() : set(until));
      return isStored;
    },
  };
  return {
    ...store,
    ...appending,
    ...sessionsOf(appending),
    async touch(session, until) {
      const moved = await store.touch(session, until);
      if (moved) await set(until);
      return moved;
    },
    async pending(before, limit) {
      const ids = await store.pending(before, limit);
      if (ids.length === 0 || due === undefined || due <= Date.now()) await setForNext();
      return ids;
    },
    async delete(id) {
      await store.delete(id);
      await clear();
    },
  };
}

// Sessions in the storage of a Durable Object.

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

// Logs in the storage of a Durable Object.

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

// Texts by key in the storage of a Durable Object.

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
