/**
 * Reports of the ends of runs whose process died before it reported them. An entry of the store remembers each report until it was delivered.
 *
 * @module
 */
import type { LeaseIndex } from "../../core/store.ts";
import type { SessionHead } from "../../core/session.ts";
import type { NumberedEvent } from "../../core/events.ts";
import { emittedForm } from "../../protocol/question.ts";
import { type CaughtUpHost, loadCaughtUp } from "../record/caught_up.ts";
import type { Records } from "../record/records.ts";
import type { RecoveredRun, Requester } from "../record/run_host.ts";
import { isRunning, knownEnd, lastEventNumber } from "../record/run_state.ts";

/** The reports of a server. */
export interface StoredReports {
  /** True if this process reports an end of the run, so `recover()` has not to. */
  isPending(run: RecoveredRun): boolean;
  /** Reports the end of a run once. Returns whether that succeeded. */
  attempt(run: RecoveredRun, end: NumberedEvent): Promise<boolean>;
  /** Removes the entry that remembers an end; without an end, that of the run. */
  remove(run: RecoveredRun, end?: NumberedEvent): Promise<void>;
}

/** The part of a server that tells how a run ended. */
export interface StoredRuns extends CaughtUpHost {
  /** The records of runs, if the server has a log. */
  readonly records: Pick<Records, "catchUp" | "lastEvent"> | undefined;
  /** Reports an error to the operator. */
  report(error: unknown, run?: string): void;
}

/** Milliseconds after which a report is given up. */
const longest = 24 * 60 * 60 * 1_000;

/** Reports the end of the run of an entry, if the run has ended. Never rejects. */
export async function redeliver(
  store: Pick<LeaseIndex, "delete">,
  { id, report: expected }: SessionHead,
  reports: StoredReports,
  runs: StoredRuns,
): Promise<void> {
  if (!expected) return;
  const { at, end: pause, ...run } = expected;
  try {
    const requester: Requester = { owner: run.owner, vars: undefined, outlive() {} };
    const session = pause ? undefined : await loadCaughtUp(runs, run.session, requester);
    if (isRunning(session, run.run)) return;
    const end = pause ? { ...pause, event: emittedForm(pause.event) } : await endOf(run, session, runs);
    const isDone = end === undefined || await reports.attempt(run, end);
    if (isDone || Date.now() > at + longest) await (pause ? store.delete(id) : reports.remove(run, end));
  } catch (error) {
    runs.report(error, run.run);
  }
}

/** Returns the last event of a run that is not running; undefined if neither its session nor its record tells it. */
async function endOf(
  expected: RecoveredRun,
  session: SessionHead | undefined,
  { records }: StoredRuns,
): Promise<NumberedEvent | undefined> {
  const { run } = expected;
  const event = knownEnd(session, run) ?? await records?.lastEvent(run, expected);
  return event && { event, id: lastEventNumber(session) };
}
