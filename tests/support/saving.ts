/**
 * Journals whose saves a test watches, delays or fails.
 *
 * @module
 */
import type { Session, Store } from "@jizai/jizai";
import type { Append, Appended, Journal, NumberedJournalEntry } from "@jizai/jizai/session/durable";
import { readSession } from "../../src/core/session_version.ts";

/** Stores a session. Resolves to its new version, or to undefined if another process was faster. */
type Save = () => Promise<number | undefined>;

/** Watches a save of a session, whose version is the one that it replaces. Its result is that of the save. */
export type WatchSave = (session: Session, save: Save) => Promise<number | undefined>;

/** Watches an append that only renews a lease. */
type WatchRenewal = (
  renew: () => Promise<Appended | undefined>,
  key: string,
  append: Append,
) => Promise<Appended | undefined>;

/** Returns the journal of a store, with `watch` around each save, and `renewal` around each renewal of a lease. */
export function saving(
  { journal }: Pick<Store, "journal">,
  watch: WatchSave,
  renewal: WatchRenewal = (renew) => renew(),
): Journal {
  return {
    ...journal,
    async append(key, append) {
      const { change, to } = append;
      if (!change) return await renewal(() => journal.append(key, append), key, append);
      let outcome: Appended | undefined;
      const save = async () => {
        outcome = await journal.append(key, append);
        return outcome?.stored ? to.n : undefined;
      };
      const version = await watch(await savedBy(journal, key, append), save);
      if (version === undefined) return outcome?.stored === false ? outcome : undefined;
      return outcome ?? { stored: true, last: change.last + change.entries.length };
    },
  };
}

/** Returns the session that an append with a change stores. */
export async function savedBy(journal: Journal, key: string, append: Append): Promise<Session> {
  const { change, to, from, created } = append;
  if (!change) throw new Error(`Cannot read the session of "${key}": the append has no change`);
  const opened = await journal.open(key);
  const { due = opened?.due ?? null } = append;
  const added = change.entries.map((entry, index): NumberedJournalEntry => [change.last + 1 + index, entry]);
  const isNext = opened !== undefined && opened.last >= change.last; // otherwise it will be refused
  const before = isNext && change.base <= change.last ? await journal.entries(key, change.base, change.last) : [];
  const all = [...before, ...added];
  const { session = created?.session, owner = created?.owner } = opened ?? {};
  const stored = {
    ...change,
    ...{ session, owner, mark: to, base: all[0]?.[0] ?? change.last + 1, last: change.last + added.length },
    ...{ events: 0, due, entries: all },
  };
  return { ...readSession(stored, session ?? key).session, version: from?.n ?? 0 };
}
