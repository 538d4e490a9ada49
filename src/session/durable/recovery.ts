/**
 * Recovery of runs whose process died: by their leases, and on a server without a request.
 *
 * @module
 */
import type { ErrorPlace } from "../../core/events.ts";
import type { Journal } from "../../core/journal.ts";
import { SharedWork } from "../../core/lib/locks.ts";
import { SessionError, type SessionHead } from "../../core/session.ts";
import { type OpenedSession, openHead } from "../../core/session_version.ts";
import type { Recover, Store } from "../../core/store.ts";
import { redeliver, type StoredReports, type StoredRuns } from "./reports.ts";
import { RecordError, type Records } from "../record/records.ts";
import type { RecoveredRun, Requester, RunHost } from "../record/run_host.ts";
import { isRunning, runOf } from "../record/run_state.ts";

// Recovery by leases: finds runs whose process died, and takes them over.

/** Continues the runs that are found. */
interface RecoveryHost {
  /** Milliseconds for which a run is claimed. */
  readonly lease: number;
  /** True if no other process uses the store, so leases need not end. */
  readonly singleProcess: boolean;
  /** Aborts when the process shuts down. */
  readonly signal: AbortSignal | undefined;
  /** True if this process executes the session's run. */
  isLive(session: SessionHead): boolean;
  /**
   * Continues the run of a session, or reports the end of a run. Resolves to undefined if another process was faster, or if this one shuts down. `key` is that of
   * its journal.
   */
  resume(key: string, session: OpenedSession<SessionHead>): Promise<{ readonly over: Promise<unknown> } | undefined>;
  /** Reports an error to the operator, with the run if it is known. */
  report(error: unknown, place?: ErrorPlace): void;
}

/** A journal that is due, and its session. */
interface Due {
  readonly key: string;
  readonly opened: OpenedSession<SessionHead>;
}

/** A run that this process has taken over. `over` settles when it has ended or paused. */
interface Taken {
  readonly id: string | undefined;
  readonly over: Promise<unknown>;
}

/** The number of runs that continue at the same time although they have died before: one of them may be the one that ends the process. */
const mostSuspects = 4;

/** A time that is later than the end of each lease, in milliseconds. */
const anyTime = 2 ** 42;

/** Recovers the runs of a store by the times at which their journals are due. */
function leaseRecovery({ journal }: Pick<Store, "journal">, host: RecoveryHost): Recover {
  /** The runs that have died before and continue, and the places that they take. */
  const suspects = new Map<SharedWork, number>();
  /** The keys of sessions that could not be read, each of which is reported once. */
  const unreadable = new Set<string>();
  /** Journals that have refused every append. They come after all others, which they would keep back. */
  const refusing = new Set<string>();

  function hasRoomFor(session: SessionHead): boolean {
    let left = mostSuspects;
    for (const [work, places] of suspects) {
      if (work.lives) left -= places;
      else suspects.delete(work);
    }
    return placesOf(session) <= left;
  }

  /** Returns a session if a run of it may continue now. One that cannot be read is reported and left as it is. */
  async function readDue(key: string): Promise<Due | undefined> {
    try {
      const opened = await openHead(journal, key);
      unreadable.delete(key);
      const { session } = opened ?? {};
      const mayContinue = session?.lease && (!hasDied(session) || hasRoomFor(session)) && !host.isLive(session);
      return opened && mayContinue ? { key, opened } : undefined;
    } catch (error) {
      if (!unreadable.has(key)) host.report(error);
      unreadable.add(key);
      return undefined;
    }
  }

  /** Returns sessions with a lost run that may continue now. The index contains others, so it reads more of the index until there are enough. */
  async function find(limit: number): Promise<readonly Due[]> {
    const due = new Map<string, Due>();
    for (let size = limit;; size *= 2) {
      const keys = await journal.pending(size, host.singleProcess ? anyTime : 0);
      const found = await Promise.all(keys.filter((key) => !due.has(key)).map(readDue));
      for (const each of found) if (each) due.set(each.key, each);
      const accepting = [...due.values()].filter(({ key }) => !refusing.has(key));
      if (accepting.length >= limit || keys.length < size) return [...new Set([...accepting, ...due.values()])];
    }
  }

  /** Continues the run of a session. Its claim decides between processes. */
  async function take({ key, opened }: Due): Promise<Taken | undefined> {
    if (host.signal?.aborted) return undefined;
    const { id: session, owner, run: { id } = {} } = opened.session;
    const place = { run: id, session, owner };
    try {
      const run = await host.resume(key, opened);
      refusing.delete(key);
      return run && { id, over: run.over };
    } catch (error) {
      host.report(error, place);
      await postpone(journal, key, opened, host.lease).catch((failure) => { // runs that cannot begin must not keep back others
        refusing.add(key);
        host.report(failure, place);
      });
      return undefined;
    }
  }

  /** Continues as many of the runs that have died before as there are places for, and then the others. Resolves when the first ones have begun. */
  async function takeSuspects(waiting: Due[]): Promise<readonly Taken[]> {
    const claims: Taken[] = [];
    for (let [next] = waiting; next && hasRoomFor(next.opened.session); [next] = waiting) {
      waiting.shift();
      const work = new SharedWork(host.lease);
      suspects.set(work, placesOf(next.opened.session));
      const run = await take(next); // never rejects
      if (!run) work.end();
      else claims.push({ ...run, over: run.over.then(() => takeAfter(work, waiting)) });
    }
    return claims;
  }

  async function takeAfter(work: SharedWork, waiting: Due[]): Promise<void> {
    work.end();
    await Promise.all((await takeSuspects(waiting)).map(({ over }) => over));
  }

  return async ({ limit = 10 } = {}) => {
    const found = await find(limit);
    const sessionOf = ({ opened: { session } }: Due) => session;
    const first = found.filter((due) => !hasDied(sessionOf(due))).slice(0, limit);
    const died = found.filter((due) => hasDied(sessionOf(due)))
      .sort((a, b) => placesOf(sessionOf(a)) - placesOf(sessionOf(b))).slice(0, limit - first.length);
    const [suspected, ...others] = await Promise.all([takeSuspects(died), ...first.map(take)]);
    const claims = [...others, ...suspected];
    return {
      runs: claims.flatMap((run) => run?.id ?? []),
      over: Promise.all(claims.map((run) => run?.over)).then(() => {}),
    };
  };
}

/** Lets no process look at a journal for the length of a lease. Resolves to false if another one was faster. */
async function postpone(
  journal: Journal,
  key: string,
  { head: { mark } }: OpenedSession<SessionHead>,
  lease: number,
): Promise<boolean> {
  const to = { holder: crypto.randomUUID(), n: mark.n + 1 };
  return (await journal.append(key, { from: mark, to, due: lease }))?.stored === true;
}

/** Returns the places that a run takes. One that has died more than once continues alone, so that no other run dies with it again and again. */
function placesOf({ run }: SessionHead): number {
  return (run?.recoveries ?? 0) > 1 ? mostSuspects : 1;
}

/** True if the run of a session was lost before. */
function hasDied({ run }: SessionHead): boolean {
  return (run?.recoveries ?? 0) > 0;
}

// Recovery on a server: lost runs continue without a request.

/** A server whose runs are recovered. */
export interface RecoveringServer extends StoredRuns, Pick<RunHost, "lease" | "signal" | "get" | "launch"> {
  /** True if no other process uses the store. */
  readonly singleProcess: boolean;
  /** The records of runs, if the server keeps them. */
  readonly records: Records | undefined;
  /** The reports of the ends of runs, if the server has the `onEnd` option. */
  readonly reports: StoredReports | undefined;
  /** Returns the vars for a run. Default: none. */
  readonly recoveryVars?: ((run: RecoveredRun) => unknown) | undefined;
}

/** Returns the `recover()` of a server. The recovery that comes with a durable store. */
export function recoveryOf(store: Pick<Store, "journal">, server: RecoveringServer): Recover {
  const { lease, singleProcess, signal, reports } = server;

  /** Returns the run of a session that this server can continue; undefined if there is none. */
  function recoverable(session: SessionHead): RecoveredRun | undefined {
    const run = runOf(session);
    if (run === undefined || !isRunning(session)) return undefined;
    const { id, owner } = session;
    return { run, session: id, ...(owner !== undefined && { owner }) };
  }

  async function resume(
    key: string,
    opened: OpenedSession<SessionHead>,
  ): Promise<{ readonly over: Promise<unknown> } | undefined> {
    const { session: stored } = opened;
    if (stored.report && reports) {
      return await postpone(store.journal, key, opened, lease)
        ? { over: redeliver(store, key, stored, reports, server) }
        : undefined;
    }
    const recovered = recoverable(stored);
    if (!recovered) return undefined;
    const { run, session, owner } = recovered;
    const after: Promise<unknown>[] = [];
    const outlive = (work: Promise<unknown>) => void after.push(work);
    const requester: Requester = { owner, vars: await server.recoveryVars?.(recovered), outlive };
    try {
      await server.launch({ run, session, answers: [] }, requester);
      return { over: Promise.all(after) };
    } catch (error) {
      const isFaster = error instanceof SessionError || error instanceof RecordError;
      if (isFaster || signal?.aborted) return undefined; // another process has continued the run, or will
      throw error;
    }
  }

  return leaseRecovery(store, {
    lease,
    singleProcess,
    signal,
    resume,
    report: (error, place) => server.report(error, place),
    isLive(session) {
      const run = session.report ?? recoverable(session);
      const isReported = session.report && (!reports || reports.isPending(session.report));
      return !run || isReported || server.get(run.run, run) !== undefined;
    },
  });
}
