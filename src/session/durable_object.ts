/**
 * Sessions and texts by key in the SQLite storage of a Durable Object.
 *
 * @module
 */
import type { Journal } from "../core/journal.ts";
import { expectMethods } from "../core/lib/options.ts";
import type { Store } from "../core/store.ts";
import type { KeyValue } from "../protocol/key_value.ts";
import { expectNames } from "../protocol/shape.ts";
import { sqlEarlierRows } from "./batch_sql/earlier_rows.ts";
import { batchesIn, sqlJournal } from "./batch_sql/journal.ts";
import { storeOf } from "./earlier_rows.ts";
import type { DeltaOptions } from "./journal_rows.ts";
import { sqlKeyValue, valueTables } from "./sql/key_value.ts";
import { journalTables, type SqlStorage } from "./sql/storage.ts";
export type { SqlStorage as ObjectStorage } from "./sql/storage.ts";
export type { KeyValue } from "../protocol/key_value.ts";
export type { DeltaOptions } from "./journal_rows.ts";

// The storage of a Durable Object.

/** Throws a `TypeError` if a value is not the storage of a Durable Object. */
function expectStorage(storage: SqlStorage): void {
  const message = "Cannot use the storage: expected ctx.storage of a Durable Object with SQLite, on Cloudflare Workers";
  expectMethods(storage, ["transactionSync"], message);
}

// Options of the adapters for Durable Objects.

/** Options of `durableObjectStore()`. */
export interface DurableObjectOptions extends DeltaOptions {
  /**
   * Milliseconds after its last change that an entry expires; for the session of an active run, after the end of its lease.
   * What has expired is not found, and `sweep()` of the app deletes it. Default: never.
   */
  readonly expireIn?: number;
  /**
   * The object's `ctx.storage`. The store sets its alarm while a run has a lease, so that a killed object starts again, and for the next sweep. The class needs
   * `alarm() { return app.recover().then(({ over }) => over).then(() => app.sweep()); }`. Default: the object starts with the next request.
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

/** A time that is later than the end of each lease, in milliseconds. */
const anyTime = 2 ** 42;

/** The `keep` of the next sweep, until the first one has told it: the default of a server. */
const keepDefault = 86_400_000;

/** Reads the time at which a sweep deletes something, in milliseconds since 1970. Null: there is nothing to sweep. */
const selectNextSweep = `SELECT min(at) AS at FROM (
  SELECT min(expires) AS at FROM jizai_journal UNION ALL SELECT min(at) + ? FROM jizai_journal_ended)`;

/**
 * Returns journals that keep an alarm set while one of them is due at a time. The alarm is set once for each lease, not for each append: a run that lives sets the
 * next one when it renews its lease. A recovery sets it for the first lease that has not ended yet, also if it finds ended ones. Without a lease, it rings when the
 * next sweep has something to delete.
 */
function alarmed(journal: Journal, alarm: ObjectAlarm, { sql }: SqlStorage): Journal {
  let ringsAt: number | undefined;
  let keepTime = keepDefault;

  async function set(until: number): Promise<void> {
    if (ringsAt !== undefined && ringsAt > Date.now() && ringsAt <= until) return;
    ringsAt = until;
    await alarm.setAlarm(until);
  }

  /** Sets the alarm for the first lease that ends after now. An alarm for an ended lease would ring at once, again and again. */
  async function setForNext(): Promise<void> {
    const ended = new Set(await journal.pending(Number.MAX_SAFE_INTEGER));
    const first = await journal.pending(ended.size + 1, anyTime);
    const key = first.find((key) => !ended.has(key));
    const { due = null } = (key !== undefined && await journal.head(key)) || {};
    if (due !== null) await set(Math.ceil(Date.now() + due));
  }

  /** Sets the alarm for the next sweep, or deletes it, if no lease needs it. */
  async function setForSweep(): Promise<void> {
    if ((await journal.pending(1, anyTime)).length > 0) return;
    const [{ at = null } = {}] = [...sql.exec(selectNextSweep, keepTime)];
    if (at !== null) {
      ringsAt = Math.max(Number(at), Date.now() + 1);
      await alarm.setAlarm(ringsAt);
    } else if (ringsAt !== undefined) {
      ringsAt = undefined;
      await alarm.deleteAlarm();
    }
  }

  return {
    ...journal,
    async append(key, append) {
      const { due } = append;
      const appended = await journal.append(key, append);
      if (appended?.stored && due !== undefined) {
        await (due === null ? setForSweep() : set(Math.ceil(Date.now() + due)));
      }
      return appended;
    },
    async pending(limit, within) {
      const keys = await journal.pending(limit, within);
      if (keys.length === 0 || ringsAt === undefined || ringsAt <= Date.now()) await setForNext();
      return keys;
    },
    async sweep(limit, keep) {
      keepTime = keep;
      const count = await journal.sweep(limit, keep);
      if (count < limit) await setForSweep();
      return count;
    },
    async delete(...keys) {
      await journal.delete(...keys);
      await setForSweep();
    },
  };
}

// Sessions in the storage of a Durable Object.

/**
 * Keeps sessions in the storage of a Durable Object. Create it once, in the constructor of the object. An append writes the row of the session, and new rows of entries and events.
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
export function durableObjectStore(storage: SqlStorage, options: DurableObjectOptions = {}): Store {
  expectNames("Cannot create durableObjectStore()", options, ["expireIn", "alarm", "deltasEvery"]);
  const { alarm, ...journalOptions } = options;
  expectStorage(storage);
  storage.transactionSync(() => {
    for (const statement of journalTables) storage.sql.exec(statement);
  });
  const execute = batchesIn(storage);
  const journal = sqlJournal(execute, journalOptions);
  return storeOf(alarm ? alarmed(journal, alarm, storage) : journal, sqlEarlierRows(execute));
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
  return sqlKeyValue(storage);
}
