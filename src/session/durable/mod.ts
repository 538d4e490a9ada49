/**
 * Durable sessions: they outlive the process, and so do their runs.
 *
 * @module
 */
import { durableWriter } from "../../core/durable.ts";
import type { LeasedSession } from "../../core/session.ts";
import { sessionsOf } from "../../core/session_version.ts";
import { isListed, type Store, type StoreAdapter, type StoredHead } from "../../core/store.ts";
import { clockOffset } from "../expiry.ts";
import { recoveryOf } from "./recovery.ts";
import { reportEntriesOf } from "./reports.ts";
export {
  type Addition,
  FinalError,
  type ForkOptions,
  type HistoryOptions,
  type HistoryPage,
  type LeaseIndex,
  type Mark,
  type OpenedSession,
  type OpenRecovery,
  type OpenReports,
  type Recover,
  type Recovered,
  type RecoverOptions,
  type RunStore,
  type SessionReader,
  type Sessions,
  type StoreAdapter,
  type StoredHead,
} from "../../core/store.ts";
export type { Entry, NumberedEntry } from "../../core/entries.ts";
export type { ExpectedReport, LeasedSession, Rule } from "../../core/session.ts";
export type { RecoveredRun } from "../record/run_host.ts";

// Leases by the clock of the database.

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
  const clock = clockOffset(now);
  return {
    ...adapter,
    head: async (id) => shiftStored(await adapter.head(id), -await clock.ahead()),
    open: async (id) => shiftStored(await adapter.open(id), -await clock.ahead()),
    async append(id, { until, ...addition }) {
      const ahead = await clock.ahead();
      const moved = typeof until === "number" ? until + ahead : until;
      return await adapter.append(id, { ...addition, ...(moved !== undefined && { until: moved }) });
    },
    pending: async (before, limit) => await adapter.pending(before + await clock.ahead(), limit),
    async touch(session, until) {
      const ahead = await clock.ahead();
      const move = (read: number) => adapter.touch(shift(session, read), until + ahead);
      return await move(ahead) || (clock.earlier !== ahead && await move(clock.earlier));
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

// The store that `durable()` makes of an adapter.

/**
 * Makes a store of the adapter of a database that outlives the process. Runs save each step, renew a lease while they work, and continue in another
 * process after a crash.
 *
 * ```ts
 * import { memory } from "@jizai/jizai";
 * import { durable, type StoreAdapter } from "@jizai/jizai/session/durable";
 *
 * const { head, open, entries, append, delete: remove, list, pending, touch } = memory(); // in place of a database
 * const adapter: StoreAdapter = { head, open, entries, append, delete: remove, list, pending, touch };
 * const store = durable(adapter);
 * ```
 */
export function durable(adapter: StoreAdapter): Store {
  const list: Store["list"] = async (options) => (await adapter.list(options)).filter(isListed);
  return {
    ...adapter,
    ...sessionsOf(adapter),
    list,
    recovery: recoveryOf,
    reports: reportEntriesOf,
    writer: durableWriter,
  };
}
