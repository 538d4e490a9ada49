/**
 * Reports of the ends of runs whose process died before it reported them. An entry of the store remembers each report until it was delivered.
 *
 * @module
 */
import type { ErrorPlace, NumberedEvent } from "../../core/events.ts";
import { reportKey } from "../../core/journal.ts";
import { isPaused, type SessionHead } from "../../core/session.ts";
import { SessionVersion } from "../../core/session_version.ts";
import type { Store } from "../../core/store.ts";
import { emittedForm, sentForm } from "../../protocol/question.ts";
import type { Records } from "../record/records.ts";
import type { RecoveredRun, Requester, RunHost } from "../record/run_host.ts";
import { isRunning, knownEnd, lastEventNumber, runOf } from "../record/run_state.ts";

// The entries of a store that remember which ends of runs have to be reported, for `recover()`.

/** The entries of a store. A run has one, which remembers its next pause or its end. A pause that is not reported when its run is resumed has its own. */
interface ReportEntries {
  /** Remembers a run before it begins, resumes, or continues. Returns false if the run had an entry already: its pause was not reported. */
  save(run: RecoveredRun): Promise<boolean>;
  /** Removes the entry that remembers an end; without an end, that of the run. */
  remove(run: RecoveredRun, end?: NumberedEvent): Promise<void>;
  /** Removes the entries of a pause that was reported: its own, and that of the run if the run is still paused there. */
  removeReported(run: RecoveredRun, pausedAt: number): Promise<void>;
}

/** The leases after which a process that calls `recover()` looks whether a run has ended. */
const patience = 4;

/** Returns the entries of `store`. They come with a durable store. */
export function reportEntriesOf(
  { journal }: Pick<Store, "journal">,
  host: Pick<RunHost, "head">,
  lease: number,
): ReportEntries {
  /** Saves an entry. Returns false if there is one already. */
  async function add(run: RecoveredRun, end?: NumberedEvent): Promise<boolean> {
    const { owner } = run;
    const key = end ? reportKey(run, end.id) : reportKey(run);
    const report = { ...run, at: Date.now(), ...(end && { end }) };
    const entry = { id: key, ...(owner !== undefined && { owner }), report };
    const holder = crypto.randomUUID();
    const { from, to, change } = SessionVersion.none.next(entry, { holder, run: 0, waiting: 0, readUntil: 0 });
    const append = { from, to, change, due: patience * lease, created: { owner } };
    return (await journal.append(key, append))?.stored === true;
  }

  /** Returns the session of a run if the run is paused. */
  async function pausedSession(run: RecoveredRun): Promise<SessionHead | undefined> {
    const session = await host.head(run.session, run);
    return isPaused(session) && runOf(session) === run.run ? session : undefined;
  }

  async function removeReported(run: RecoveredRun, pausedAt: number): Promise<void> {
    const pause = reportKey(run, pausedAt);
    if (lastEventNumber(await pausedSession(run)) === pausedAt) {
      await journal.delete(reportKey(run));
      if (!await journal.head(pause)) return;
      await add(run); // a process that resumes the run has found the removed entry
    }
    await journal.delete(pause); // the entry of a run that was resumed stays for the end that follows
  }

  return {
    async save(run) {
      if (await add(run)) return true;
      const session = await pausedSession(run); // otherwise an earlier process of the run has saved the entry
      const event = knownEnd(session, run.run);
      if (event) {
        await add(run, { id: lastEventNumber(session), event: sentForm(event) });
        await add(run); // the process that has reported the pause may have removed it meanwhile
      }
      return false;
    },
    async remove(run, end) {
      if (end?.event.type === "run.paused") await removeReported(run, end.id);
      else await journal.delete(reportKey(run));
    },
    removeReported,
  };
}

// The reports of a store: they are noted, and delivered until they arrive.

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
export interface StoredRuns extends Pick<RunHost, "head"> {
  /** The records of runs, if the server keeps them. */
  readonly records: Pick<Records, "lastEvent"> | undefined;
  /** Reports an error to the operator. */
  report(error: unknown, place?: ErrorPlace): void;
}

/** Milliseconds after which a report is given up. */
const longest = 24 * 60 * 60 * 1_000;

/** Reports the end of the run of an entry, if the run has ended. Never rejects. */
export async function redeliver(
  { journal }: Pick<Store, "journal">,
  key: string,
  { report: expected }: SessionHead,
  reports: StoredReports,
  runs: StoredRuns,
): Promise<void> {
  if (!expected) return;
  const { at, end: pause, ...run } = expected;
  try {
    const requester: Requester = { owner: run.owner, vars: undefined, outlive() {} };
    const session = pause ? undefined : await runs.head(run.session, requester);
    if (isRunning(session, run.run)) return;
    const end = pause ? { ...pause, event: emittedForm(pause.event) } : await endOf(run, session, runs);
    const isDone = end === undefined || await reports.attempt(run, end);
    if (isDone || Date.now() > at + longest) await (pause ? journal.delete(key) : reports.remove(run, end));
  } catch (error) {
    runs.report(error, run);
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
