/**
 * Durable sessions: they outlive the process, and so do their runs.
 *
 * @module
 */
import { durableWriter } from "../../core/durable.ts";
import { sessionsOf } from "../../core/session_version.ts";
import { isListed, type Store, type StoreAdapter } from "../../core/store.ts";
import { reportEntriesOf } from "./report_entries.ts";
import { recoveryOf } from "./server_recovery.ts";

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
  type Sessions,
  type StoreAdapter,
  type StoredHead,
} from "../../core/store.ts";
export type { Entry, NumberedEntry } from "../../core/entries.ts";
export type { ExpectedReport, LeasedSession, Rule } from "../../core/session.ts";
export type { RecoveredRun } from "../record/run_host.ts";
export { byDatabaseClock } from "./database_clock.ts";

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
