/**
 * Durable sessions: they outlive the process, and so do their runs.
 *
 * @module
 */
import { handOver, takeOver } from "../../core/hand_over.ts";
import type { Journal } from "../../core/journal.ts";
import { sessionsIn } from "../../core/sessions.ts";
import type { DurableRuns, EarlierSessions, Store } from "../../core/store.ts";
import { boundedStore } from "./bounded.ts";
import { recoveryOf } from "./recovery.ts";
import { reportEntriesOf } from "./reports.ts";
export {
  type BoundedStore,
  type BoundOptions,
  type ClaimWithdrawals,
  type DurableRuns,
  type EarlierSessions,
  FinalError,
  type ForkOptions,
  type HistoryOptions,
  type HistoryPage,
  type ListOptions,
  type Recover,
  type Recovered,
  type RecoverOptions,
  type Release,
  type RunStore,
  type SessionName,
  type Sessions,
  StoreDeadlineError,
  type StoreFact,
  type StoreOperation,
  type Sweep,
  type SweepOptions,
} from "../../core/store.ts";
export { SlowStoreError } from "./bounded.ts";
export type {
  Append,
  Appended,
  Created,
  EndedEntry,
  HeadChange,
  Journal,
  JournalChange,
  JournalEntry,
  JournalHead,
  JournalLines,
  JournalListOptions,
  JournalPage,
  JournalWatcher,
  MailEntry,
  Mark,
  NumberedJournalEntry,
  OpenedJournal,
  Post,
  Posted,
  PostedMail,
  RunState,
} from "../../core/journal.ts";
export type { Entry } from "../../core/entries.ts";
export type { ExpectedReport, Mail, Rule, Unsaved } from "../../core/session.ts";
export type { RecoveredRun } from "../record/run_host.ts";

const runs: DurableRuns = {
  takeOver,
  handOver,
  bound: boundedStore,
  recovery: recoveryOf,
  reports: reportEntriesOf,
};

/**
 * Makes a store of the journal of a database that outlives the process. Runs save each step, renew a lease while they work, and continue in another process
 * after a crash. `earlier` are sessions in another form, each of which is stored in a journal before it is read.
 *
 * ```ts
 * import { memory } from "@jizai/jizai";
 * import { durable } from "@jizai/jizai/session/durable";
 *
 * const { journal } = memory(); // in place of a database
 * const store = durable(journal);
 * ```
 */
export function durable(journal: Journal, earlier?: EarlierSessions): Store {
  return { journal, ...(earlier && { earlier }), ...sessionsIn(journal, earlier), durable: runs };
}
