/**
 * The alarm of a Durable Object as a waker: it rings at the end of the next lease, so that an object that was killed starts again.
 *
 * @module
 */
import { sessionsOf } from "../../core/session_version.ts";
import type { Addition, Store } from "../../core/store.ts";

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
export function alarmed(store: Store, alarm: ObjectAlarm): Store {
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
