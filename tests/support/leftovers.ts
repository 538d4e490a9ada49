/**
 * The journals of stores, to find what a request has left behind.
 *
 * @module
 */
import type { Store } from "@jizai/jizai";
import type { Journal } from "@jizai/jizai/session/durable";

/** Returns a store whose journals are listed, and the keys of those that it keeps: of sessions, idempotency keys and reports. */
export function listedStore<S extends Pick<Store, "journal">>(
  store: S,
): { readonly store: S; readonly keys: ReadonlySet<string> } {
  const keys = new Set<string>();
  const journal: Journal = {
    ...store.journal,
    async append(key, append) {
      const done = await store.journal.append(key, append);
      if (done?.stored) keys.add(key);
      return done;
    },
    async delete(...deleted) {
      await store.journal.delete(...deleted);
      for (const key of deleted) keys.delete(key);
    },
  };
  return { store: { ...store, journal }, keys };
}

/** Returns the ids of the sessions of a store, and the keys of the journals of which other processes must look, also of those that it does not list. */
export async function entriesOf(store: Store): Promise<readonly string[]> {
  const leased = await store.journal.pending(1_000, 2 ** 42);
  return [...new Set([...await store.list({ limit: 1_000 }), ...leased])].sort();
}
