/**
 * The entries of a store that remember which ends of runs have to be reported, for `recover()`.
 *
 * @module
 */
import type { NumberedEvent } from "../../core/run/events.ts";
import { type ExpectedReport, isPaused, type Session } from "../../core/persistence/session.ts";
import { hidden, type OpenReports, type Store } from "../../core/persistence/store.ts";
import type { RecoveredRun, Requester, RunHost } from "../record/run_host.ts";
import { finalEvent, lastEventNumber, runOf } from "../record/run_state.ts";

/** The entries of a store. A run has one, which remembers its next pause or its end. A pause that is not reported when its run is resumed has its own. */
export interface ReportEntries {
  /** Remembers a run before it begins, resumes, or continues. Returns false if the run had an entry already: its pause was not reported. */
  save(run: RecoveredRun): Promise<boolean>;
  /** Removes the entry that remembers an end; without an end, that of the run. */
  remove(run: RecoveredRun, end?: NumberedEvent): Promise<void>;
  /** Removes the entries of a pause that was reported: its own, and that of the run if the run is still paused there. */
  removeReported(run: RecoveredRun, pausedAt: number): Promise<void>;
  /** Removes the own entry of a pause. */
  removePause(run: RecoveredRun, pause: NumberedEvent): Promise<void>;
}

/** The leases after which a process that calls `recover()` looks whether a run has ended. */
const patience = 4;

/** The entries that come with a durable store. A server calls them as `reportEntriesOf()`. */
export const reportEntries: OpenReports = reportEntriesOf;

/** Returns the entries of `store`. */
export function reportEntriesOf(
  store: Pick<Store, "load" | "save" | "delete">,
  host: Pick<RunHost, "load">,
  lease: number,
): ReportEntries {
  /** Saves an entry. Returns false if there is one already. */
  async function add(id: string, { owner, ...run }: RecoveredRun, end?: ExpectedReport["end"]): Promise<boolean> {
    const now = Date.now();
    const owned = owner !== undefined && { owner };
    const saved = await store.save({
      id,
      version: 0,
      messages: [],
      ...owned,
      report: { ...run, ...owned, at: now, ...(end && { end }) },
      lease: { until: Math.ceil(now + patience * lease) },
    });
    return saved !== undefined;
  }

  /** Returns the session of a run if the run is paused. */
  async function pausedSession({ run, session: id, owner }: RecoveredRun): Promise<Session | undefined> {
    const requester: Requester = { owner, vars: undefined, outlive() {} };
    const session = await host.load(id, requester);
    return isPaused(session) && runOf(session) === run ? session : undefined;
  }

  async function removeReported(run: RecoveredRun, pausedAt: number): Promise<void> {
    const pause = reportKey(run, [pausedAt]);
    if (lastEventNumber(await pausedSession(run)) === pausedAt) {
      await store.delete(reportKey(run));
      if (!await store.load(pause)) return;
      await add(reportKey(run), run); // a process that resumes the run has found the removed entry
    }
    await store.delete(pause); // the entry of a run that was resumed stays for the end that follows
  }

  return {
    async save(run) {
      if (await add(reportKey(run), run)) return true;
      const session = await pausedSession(run); // otherwise an earlier process of the run has saved the entry
      if (!session) return false;
      const id = lastEventNumber(session);
      await add(reportKey(run, [id]), run, { id, event: finalEvent(session, run.run) });
      await add(reportKey(run), run); // the process that has reported the pause may have removed it meanwhile
      return false;
    },
    async remove(run, end) {
      if (end?.event.type === "run.paused") await removeReported(run, end.id);
      else await store.delete(reportKey(run));
    },
    removeReported,
    removePause: (run, { id }) => store.delete(reportKey(run, [id])),
  };
}

/** Returns the id of the entry of a run, or of its pause at an event. */
function reportKey({ run, owner = "" }: RecoveredRun, pausedAt: readonly [] | readonly [number] = []): string {
  return hidden + JSON.stringify([owner, run, ...pausedAt]);
}
