/**
 * Whole sessions in a journal: the operations of a store that load, save, copy, list and delete them.
 *
 * @module
 */
import { transcriptOf } from "./entries.ts";
import { type Journal, journalKey } from "./journal.ts";
import { historyIn, openSession, readStored, storeSession } from "./session_version.ts";
import type { EarlierSessions, SessionName, Sessions } from "./store.ts";

/** Returns the operations on whole sessions of a journal. */
export function sessionsIn(journal: Journal, earlier?: EarlierSessions): Sessions {
  const keyOf = (id: string, { owner }: SessionName = {}) => journalKey(owner, id);
  const store = { journal, ...(earlier && { earlier }) };
  const open = (id: string, { owner }: SessionName = {}) => readStored(store, { id, owner }, openSession);
  return {
    async load(id, name) {
      const opened = await open(id, name);
      if (!opened) return undefined;
      const { readUntil: _, ...session } = opened.session; // it counts entries, which only the journal has
      return session;
    },
    async save({ version, ...session }) {
      const key = keyOf(session.id, session);
      const opened = await open(session.id, session);
      if ((opened?.version.n ?? 0) !== version) return undefined;
      return await storeSession(journal, key, session, opened) ? version + 1 : undefined;
    },
    history: (id, options) =>
      readStored(store, { id, owner: options?.owner }, (journal, key) => historyIn(journal, key, options)),
    async fork(id, to, { at, owner } = {}) {
      const key = keyOf(id, { owner });
      const { session, version } = await open(id, { owner }) ?? {};
      if (!session || !version || at !== undefined && !(at >= 0 && at <= version.last)) return false;
      const messages = at === undefined ? session.messages : transcriptOf(await journal.entries(key, 1, at)).messages;
      const { state, rules } = session;
      const copy = {
        id: to,
        messages,
        ...(owner !== undefined && { owner }),
        ...(state && { state }),
        ...(rules && { rules }),
      };
      await earlier?.move(to, { owner }); // if there is one, it is not replaced
      return await storeSession(journal, keyOf(to, { owner }), copy);
    },
    list: (options) => journal.list(options),
    async delete(id, name) {
      await earlier?.delete(id, name);
      await journal.delete(keyOf(id, name));
    },
  };
}
