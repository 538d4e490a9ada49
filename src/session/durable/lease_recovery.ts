/**
 * Recovery by leases: finds runs whose process died, and takes them over.
 *
 * @module
 */
import { SharedWork } from "../../core/lib/shared_work.ts";
import type { LeaseIndex, Recover } from "../../core/persistence/recovery.ts";
import type { SessionHead } from "../../core/persistence/session.ts";
import { openHead } from "../../core/persistence/session_version.ts";

/** Continues the runs that are found. */
export interface RecoveryHost {
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
  /** Reports an error to the operator. */
  report(error: unknown): void;
}

/** A run that this process has taken over. `over` settles when it has ended or paused. */
interface Taken {
  readonly id: string | undefined;
  readonly over: Promise<unknown>;
}

/** Recovers the runs of a store by its index of leases. */
export function leaseRecovery(store: LeaseIndex, host: RecoveryHost): Recover {
  /** The runs that have died before and continue. One of them runs at a time, since it may be the one that ends the process. */
  let suspects: SharedWork | undefined;

  /** Returns sessions with a lost run that may continue now. The index contains others, so it reads more of the index until there are enough. */
  async function find(limit: number): Promise<readonly SessionHead[]> {
    const before = host.singleProcess ? Number.MAX_SAFE_INTEGER : Date.now();
    const due = new Map<string, SessionHead>();
    for (let size = limit;; size *= 2) {
      const ids = await store.pending(before, size);
      const loaded = await Promise.all(
        ids.filter((id) => !due.has(id)).map(async (id) => (await openHead(store, id)).session),
      );
      for (const session of loaded) {
        const mayContinue = session?.lease && !(suspects?.lives && hasDied(session)) && !host.isLive(session);
        if (mayContinue) due.set(session.id, session);
      }
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
      host.report(error); // its lease ends again, and the next recovery tries again
      return undefined;
    }
  }

  /** Continues runs that have died before, one after another. Resolves when the first has begun. */
  async function takeSuspects(
    [session, ...rest]: readonly SessionHead[],
    work = new SharedWork(host.lease),
  ): Promise<Taken | undefined> {
    if (!session) return void work.end();
    suspects = work;
    const run = await take(session); // never rejects
    if (!run) return await takeSuspects(rest, work);
    return { ...run, over: run.over.then(async () => await (await takeSuspects(rest, work))?.over) };
  }

  return async ({ limit = 10 } = {}) => {
    const found = await find(limit);
    const first = found.filter((session) => !hasDied(session)).slice(0, limit);
    const died = found.filter(hasDied).slice(0, limit - first.length);
    const taken = await Promise.all([...first.map(take), suspects?.lives ? undefined : takeSuspects(died)]);
    return {
      runs: taken.flatMap((run) => run?.id ?? []),
      over: Promise.all(taken.map((run) => run?.over)).then(() => {}),
    };
  };
}

/** True if the run of a session was lost before. */
function hasDied({ run }: SessionHead): boolean {
  return (run?.recoveries ?? 0) > 0;
}
