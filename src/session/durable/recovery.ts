/**
 * Recovery of runs whose process died: by their leases, and on a server without a request.
 *
 * @module
 */
import { SharedWork } from "../../core/lib/locks.ts";
import { SessionError, type SessionHead } from "../../core/session.ts";
import { openHead } from "../../core/session_version.ts";
import type { LeaseIndex, Recover } from "../../core/store.ts";
import { redeliver, type StoredReports, type StoredRuns } from "./reports.ts";
import { idWithoutOwner } from "../owned_store.ts";
import { RecordError, type Records } from "../record/records.ts";
import type { RecoveredRun, Requester, RunHost } from "../record/run_host.ts";
import { isRunning, leaseEnd, runOf } from "../record/run_state.ts";

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
   * Continues the run of a session that was claimed, or reports the end of a run. Resolves to undefined if another process was faster, or if this one shuts
   * down.
   */
  resume(session: SessionHead): Promise<{ readonly over: Promise<unknown> } | undefined>;
  /** Reports an error to the operator, with the run if it is known. */
  report(error: unknown, run?: string): void;
}

/** A run that this process has taken over. `over` settles when it has ended or paused. */
interface Taken {
  readonly id: string | undefined;
  readonly over: Promise<unknown>;
}

/** The number of runs that continue at the same time although they have died before: one of them may be the one that ends the process. */
const mostSuspects = 4;

/** Recovers the runs of a store by its index of leases. */
function leaseRecovery(store: LeaseIndex, host: RecoveryHost): Recover {
  /** The runs that have died before and continue, and the places that they take. */
  const suspects = new Map<SharedWork, number>();
  /** The ids of sessions that could not be read, each of which is reported once. */
  const unreadable = new Set<string>();

  function hasRoomFor(session: SessionHead): boolean {
    let left = mostSuspects;
    for (const [work, places] of suspects) {
      if (work.lives) left -= places;
      else suspects.delete(work);
    }
    return placesOf(session) <= left;
  }

  /** Returns a session if a run of it may continue now. One that cannot be read is reported and left as it is. */
  async function readDue(id: string): Promise<SessionHead | undefined> {
    try {
      const { session } = await openHead(store, id);
      unreadable.delete(id);
      const mayContinue = session?.lease && (!hasDied(session) || hasRoomFor(session)) && !host.isLive(session);
      return mayContinue ? session : undefined;
    } catch (error) {
      if (!unreadable.has(id)) host.report(error);
      unreadable.add(id);
      return undefined;
    }
  }

  /** Returns sessions with a lost run that may continue now. The index contains others, so it reads more of the index until there are enough. */
  async function find(limit: number): Promise<readonly SessionHead[]> {
    const before = host.singleProcess ? Number.MAX_SAFE_INTEGER : Date.now();
    const due = new Map<string, SessionHead>();
    for (let size = limit;; size *= 2) {
      const ids = await store.pending(before, size);
      const loaded = await Promise.all(ids.filter((id) => !due.has(id)).map(readDue));
      for (const session of loaded) if (session) due.set(session.id, session);
      if (due.size >= limit || ids.length < size) return [...due.values()];
    }
  }

  /** Claims a session, and continues its run. */
  async function take(session: SessionHead): Promise<Taken | undefined> {
    if (host.signal?.aborted) return undefined;
    const until = Math.ceil(Date.now() + host.lease);
    const claimed = { ...session, lease: { ...session.lease, until } };
    try {
      if (!await store.touch(session, until)) return undefined;
      const run = await host.resume(claimed);
      if (!run && host.signal?.aborted) await store.touch(claimed, Date.now()); // so that no process waits for the lease
      return run && { id: session.run?.id, over: run.over };
    } catch (error) {
      host.report(error, session.run?.id); // its lease ends again, and the next recovery tries again
      return undefined;
    }
  }

  /** Continues as many of the runs that have died before as there are places for, and then the others. Resolves when the first ones have begun. */
  async function takeSuspects(waiting: SessionHead[]): Promise<readonly Taken[]> {
    const claims: Taken[] = [];
    for (let [next] = waiting; next && hasRoomFor(next); [next] = waiting) {
      waiting.shift();
      const work = new SharedWork(host.lease);
      suspects.set(work, placesOf(next));
      const run = await take(next); // never rejects
      if (!run) work.end();
      else claims.push({ ...run, over: run.over.then(() => takeAfter(work, waiting)) });
    }
    return claims;
  }

  async function takeAfter(work: SharedWork, waiting: SessionHead[]): Promise<void> {
    work.end();
    await Promise.all((await takeSuspects(waiting)).map(({ over }) => over));
  }

  return async ({ limit = 10 } = {}) => {
    const found = await find(limit);
    const first = found.filter((session) => !hasDied(session)).slice(0, limit);
    const died = found.filter(hasDied).sort((a, b) => placesOf(a) - placesOf(b)).slice(0, limit - first.length);
    const [suspected, ...others] = await Promise.all([takeSuspects(died), ...first.map(take)]);
    const claims = [...others, ...suspected];
    return {
      runs: claims.flatMap((run) => run?.id ?? []),
      over: Promise.all(claims.map((run) => run?.over)).then(() => {}),
    };
  };
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
  /** The records of runs, if the server has a log. */
  readonly records: Records | undefined;
  /** The reports of the ends of runs, if the server has the `onEnd` option. */
  readonly reports: StoredReports | undefined;
  /** Returns the vars for a run. Default: none. */
  readonly recoveryVars?: ((run: RecoveredRun) => unknown) | undefined;
}

/** Returns the `recover()` of a server. The recovery that comes with a durable store. */
export function recoveryOf(store: LeaseIndex, server: RecoveringServer): Recover {
  const { lease, singleProcess, signal, reports } = server;

  /** Returns the session as its owner's requests know it; undefined if no run of this server can continue it. */
  function recoverable(session: SessionHead): RecoveredRun | undefined {
    const [run, id] = [runOf(session), idWithoutOwner(session)];
    if (run === undefined || id === undefined || !isRunning(session)) return undefined;
    const { owner } = session;
    return { run, session: id, ...(owner !== undefined && { owner }) };
  }

  async function resume(stored: SessionHead): Promise<{ readonly over: Promise<unknown> } | undefined> {
    if (stored.report && reports) return { over: redeliver(store, stored, reports, server) };
    const recovered = recoverable(stored);
    if (!recovered) return undefined;
    const { run, session, owner } = recovered;
    const after: Promise<unknown>[] = [];
    const outlive = (work: Promise<unknown>) => void after.push(work);
    const requester: Requester = { owner, vars: await server.recoveryVars?.(recovered), outlive };
    try {
      await server.launch({ run, session, answers: [], claimedUntil: leaseEnd(stored) }, requester);
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
    report: (error, run) => server.report(error, run),
    isLive(session) {
      const run = session.report ?? recoverable(session);
      const isReported = session.report && (!reports || reports.isPending(session.report));
      return !run || isReported || server.get(run.run, run) !== undefined;
    },
  });
}
