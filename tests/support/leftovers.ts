/**
 * The entries of stores and logs, to find what a request has left behind.
 *
 * @module
 */
import type { Store } from "@jizai/jizai";
import type { Log } from "@jizai/jizai/session/log";

/** Returns a log, and the ids of the records that it keeps: those of runs and of idempotency keys. */
export function listedLog(log: Log): { readonly log: Log; readonly records: ReadonlySet<string> } {
  const records = new Set<string>();
  const listed: Log = {
    ...log,
    async append(run, addition) {
      const done = await log.append(run, addition);
      if (done) records.add(run);
      return done;
    },
    async delete(run) {
      await log.delete(run);
      records.delete(run);
    },
  };
  return { log: listed, records };
}

/** Returns the ids of the sessions of a store, and the keys of the journals of which other processes must look, also of those that it does not list. */
export async function entriesOf(store: Store): Promise<readonly string[]> {
  const leased = await store.journal.pending(1_000, 2 ** 42);
  return [...new Set([...await store.list({ limit: 1_000 }), ...leased])].sort();
}
