/**
 * Stores whose saves a test watches, delays or fails.
 *
 * @module
 */
import type { Session, Store } from "@jizai/jizai";
import { type Addition, durable, type NumberedEntry, type StoreAdapter } from "@jizai/jizai/session/durable";

/** Stores a session. Resolves to its new version, or to undefined if another process was faster. */
type Save = () => Promise<number | undefined>;

/** Watches a save of a session, whose version is the one that it replaces. Its result is that of the save. */
export type WatchSave = (session: Session, save: Save) => Promise<number | undefined>;

/** Returns the members of a store that save, with `watch` around each save. */
export function saving(store: StoreAdapter, watch: WatchSave): Pick<Store, "append" | "load" | "save"> {
  const append = async (id: string, addition: Addition) => {
    const save = async () => await store.append(id, addition) ? addition.to.n : undefined;
    return await watch(await savedBy(store, id, addition), save) !== undefined;
  };
  const { load, save } = durable({ ...store, append });
  return { append, load, save };
}

/** Returns the session that an addition stores. */
export async function savedBy(store: StoreAdapter, id: string, addition: Addition): Promise<Session> {
  const { head, entries, first, base, to, from } = addition;
  const opened = await store.open(id);
  const { until = opened?.until ?? null } = addition;
  const added = entries.map((entry, index): NumberedEntry => [first + index, entry]);
  const isNext = opened !== undefined && opened.last >= first - 1; // otherwise it will be refused
  const before = isNext && base < first ? await store.entries(id, base, first - 1) : [];
  const all = [...before, ...added];
  const stored = { mark: to, base: all[0]?.[0] ?? first, last: first + entries.length - 1, until, head, entries: all };
  const session = await durable({ ...store, open: () => Promise.resolve(stored) }).load(id);
  if (!session) throw new Error(`Cannot read session "${id}": nothing is stored`);
  return { ...session, version: from?.n ?? 0 };
}
