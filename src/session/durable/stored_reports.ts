/**
 * Reports of the ends of runs whose process died before it reported them. An entry of the store remembers each report until it was delivered.
 *
 * @module
 */
import type { Session } from "../../core/persistence/session.ts";
import type { Event } from "../../protocol/event.ts";
import type { Records } from "../record/run_records.ts";
import type { RecoveredRun, Requester, RunHost } from "../record/run_host.ts";
import { finalEvent, hasEnded, isRunning, runOf } from "../record/run_state.ts";

/** The reports of a server. */
export interface StoredReports {
  /** True if this process reports the entry, so no other has to. */
  isPending(entry: Session): boolean;
  /** Reports the end of a run once; `at` is the number of its last event. Returns whether that succeeded. */
  attempt(run: RecoveredRun, event: Event, at: number | undefined): Promise<boolean>;
  /** Removes an entry. */
  remove(id: string): Promise<void>;
}

/** The part of a server that tells how a run ended. */
export interface StoredRuns extends Pick<RunHost, "load"> {
  /** The records of runs, if the server has a log. */
  readonly records: Pick<Records, "lastEvent"> | undefined;
  /** Reports an error to the operator. */
  report(error: unknown, run?: string): void;
}

/** Milliseconds after which a report is given up. */
const longest = 24 * 60 * 60 * 1_000;

/** Reports the end of the run of an entry, if the run has ended. Never rejects. */
export async function redeliver(
  { id, report: expected }: Session,
  reports: StoredReports,
  { load, records, report }: StoredRuns,
): Promise<void> {
  if (!expected) return;
  const { at, ...run } = expected;
  try {
    const requester: Requester = { owner: run.owner, vars: undefined, outlive() {} };
    const session = await load(run.session, requester);
    if (isRunning(session, run.run)) return;
    const isKnown = hasEnded(session, run.run) || runOf(session) === run.run;
    const event = isKnown ? finalEvent(session, run.run) : await records?.lastEvent(run.run, requester);
    const isDone = event === undefined || await reports.attempt(run, event, session?.run?.events);
    if (isDone || Date.now() > at + longest) await reports.remove(id);
  } catch (error) {
    report(error, run.run);
  }
}
