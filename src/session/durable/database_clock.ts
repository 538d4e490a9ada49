/**
 * Leases by the clock of the database: the clocks of processes may be wrong.
 *
 * @module
 */
import type { LeasedSession } from "../../core/session.ts";
import type { StoreAdapter, StoredHead } from "../../core/store.ts";

/** Milliseconds after which the clocks are compared again. */
const compareEvery = 60_000;

/**
 * Returns the adapter with leases that end by the clock of the database, so that the clocks of processes may be wrong. Callers read and write the ends by the
 * clock of their process. `now` returns the time of the database, in milliseconds since 1970.
 *
 * ```ts
 * import type { StoreAdapter, StoredHead } from "@jizai/jizai/session/durable";
 * import { byDatabaseClock, durable } from "@jizai/jizai/session/durable";
 *
 * // now: () => the result of a query, such as SELECT now()
 * export const storeOf = (adapter: StoreAdapter, now: () => Promise<number>) => durable(byDatabaseClock(adapter, now));
 * ```
 */
export function byDatabaseClock(adapter: StoreAdapter, now: () => Promise<number>): StoreAdapter {
  /** Milliseconds by which the database's clock is ahead, and those before the last change: a lease may have been read with them. */
  let [offset, earlier] = [0, 0];
  /** The time of the process when it compared the clocks. */
  let compared = -Infinity;

  /** Compares the clocks if that is due, or if the clock of the process was set. Returns the offset. A change that the time of the request explains is none. */
  async function compare(): Promise<number> {
    const sent = Date.now();
    if (Math.abs(sent - compared) < compareEvery) return offset;
    const time = await now();
    const took = Date.now() - sent;
    const found = Math.round(time - sent - took / 2);
    if (compared === -Infinity) [offset, earlier] = [found, found];
    else if (Math.abs(found - offset) > Math.abs(took) + 1) [offset, earlier] = [found, offset];
    compared = sent;
    return offset;
  }

  return {
    ...adapter,
    head: async (id) => shiftStored(await adapter.head(id), -await compare()),
    open: async (id) => shiftStored(await adapter.open(id), -await compare()),
    async append(id, { until, ...addition }) {
      const ahead = await compare();
      const moved = typeof until === "number" ? until + ahead : until;
      return await adapter.append(id, { ...addition, ...(moved !== undefined && { until: moved }) });
    },
    pending: async (before, limit) => await adapter.pending(before + await compare(), limit),
    async touch(session, until) {
      const ahead = await compare();
      const move = (read: number) => adapter.touch(shift(session, read), until + ahead);
      return await move(ahead) || (earlier !== ahead && await move(earlier));
    },
  };
}

/** Returns a session whose lease ends `ms` milliseconds later. */
function shift({ lease, ...session }: LeasedSession, ms: number): LeasedSession {
  return lease ? { ...session, lease: { ...lease, until: lease.until + ms } } : session;
}

function shiftStored<S extends StoredHead>(stored: S | undefined, ms: number): S | undefined {
  return stored && stored.until !== null ? { ...stored, until: stored.until + ms } : stored;
}
