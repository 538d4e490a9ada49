/**
 * Recovery: finds runs whose process died, by their leases, and takes them over.
 *
 * @module
 */
import type { LeaseIndex, Recover } from "../../core/persistence/recovery.ts";
import type { Session } from "../../core/persistence/session.ts";

/** Continues the runs that are found. */
export interface RecoveryHost {
  /** Milliseconds for which a run is claimed. */
  readonly lease: number;
  /** True if no other process uses the store, so leases need not end. */
  readonly singleProcess: boolean;
  /** Aborts when the process shuts down. */
  readonly signal: AbortSignal | undefined;
  /** True if this process executes the session's run. */
  isLive(session: Session): boolean;
  /**
   * Continues the run of a session that was claimed, or reports the end of a run. Resolves to undefined if another process was faster, or if this one shuts
   * down.
   */
  resume(session: Session): Promise<{ readonly over: Promise<unknown> } | undefined>;
  /** Reports an error to the operator. */
  report(error: unknown): void;
}

/** Recovers the runs of a store by its index of leases. */
export function recovery(store: LeaseIndex, host: RecoveryHost): Recover {
  /** The runs that have died before. One of them runs at a time, since it may be the one that ends the process. */
  let suspects: Promise<void> | undefined;

  /** Returns sessions with a lost run. Runs of this process have to be skipped, so it reads more of the index until there are enough. */
  async function find(limit: number): Promise<readonly Session[]> {
    const before = host.singleProcess ? Number.MAX_SAFE_INTEGER : Date.now();
    const known = new Map<string, Session>();
    for (let size = limit;; size *= 2) {
      const ids = await store.pending(before, size);
      const loaded = await Promise.all(ids.filter((id) => !known.has(id)).map((id) => store.load(id)));
      for (const session of loaded) if (session?.lease && !host.isLive(session)) known.set(session.id, session);
      const found = [...known.values()];
      const enough = found.filter((session) => !suspects || !hasDied(session)).length >= limit;
      if (enough || ids.length < size) return found;
    }
  }

  /** Claims a session, and continues its run. */
  async function take(
    session: Session,
  ): Promise<{ readonly id: string | undefined; readonly over: Promise<unknown> } | undefined> {
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

  /** Continues runs one after another. Resolves when the first has begun. */
  async function takeSuspects(sessions: readonly Session[]) {
    if (suspects || sessions.length === 0) return [];
    const begun = Promise.withResolvers<Awaited<ReturnType<typeof take>>>();
    const work = async () => {
      for (const session of sessions) {
        const run = await take(session); // never rejects
        if (run) begun.resolve({ ...run, over });
        await run?.over;
      }
      begun.resolve(undefined);
      suspects = undefined;
    };
    const over = Promise.resolve().then(work);
    suspects = over;
    return [await begun.promise];
  }

  return async ({ limit = 10 } = {}) => {
    const found = await find(limit);
    const first = found.filter((session) => !hasDied(session)).slice(0, limit);
    const rest = found.filter(hasDied).slice(0, limit - first.length);
    const taken = (await Promise.all([...first.map(take), takeSuspects(rest)])).flat();
    const runs = taken.filter((run) => run !== undefined);
    return { runs: runs.flatMap(({ id }) => id ?? []), over: Promise.all(runs.map(({ over }) => over)).then(() => {}) };
  };
}

/** True if the run of a session was lost before. */
function hasDied({ run }: Session): boolean {
  return (run?.recoveries ?? 0) > 0;
}
