/**
 * Durable sessions: they outlive the process, and so do their runs.
 *
 * @module
 */
import { durableWriter } from "../../core/persistence/durable/session_writer.ts";
import { sessionsOf } from "../../core/persistence/session_version.ts";
import { isListed, type Store, type StoreAdapter } from "../../core/persistence/store.ts";
import { reportEntriesOf } from "./report_entries.ts";
import { recoveryOf } from "./server_recovery.ts";

export { FinalError } from "../../core/persistence/final_error.ts";
export type { LeaseIndex, OpenRecovery, Recover, Recovered, RecoverOptions } from "../../core/persistence/recovery.ts";
export type { Entry, NumberedEntry } from "../../core/persistence/entries.ts";
export type { ExpectedReport, LeasedSession, Rule } from "../../core/persistence/session.ts";
export type {
  Addition,
  ForkOptions,
  HistoryOptions,
  HistoryPage,
  Mark,
  OpenedSession,
  OpenReports,
  RunStore,
  Sessions,
  StoreAdapter,
  StoredHead,
} from "../../core/persistence/store.ts";
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
