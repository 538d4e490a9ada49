/**
 * Whole sessions in a journal: the operations of a store that load, save, copy, list and delete them, and the deletion of all that belongs to one.
 *
 * @module
 */
import { transcriptOf } from "./entries.ts";
import { type Journal, type JournalHead, journalKey, reportKey, runIdOf } from "./journal.ts";
import type { SessionHead } from "./session.ts";
import { historyIn, openHead, openSession, readStored, storeSession } from "./session_version.ts";
import { type EarlierSessions, type SessionName, type Sessions, type Store, UnreadableError } from "./store.ts";

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
    delete: (id, { owner } = {}) => deleteSession(store, { id, owner }),
  };
}

/**
 * Deletes a session, and what belongs to it: its entries with the mail, its events, the idempotency keys of its runs, and the reports of their ends that are
 * owed. A process that has the session can store nothing more.
 */
export async function deleteSession(
  store: Pick<Store, "journal" | "earlier">,
  { id, owner }: SessionName & { readonly id: string },
): Promise<void> {
  const { journal, earlier } = store;
  const key = journalKey(owner, id);
  const { session } = await readStored(store, { id, owner }, openHead).catch(unlessUnreadable) ?? {};
  const head = await journal.head(key);
  const hidden = head && await hiddenKeys(journal, { id, key, head, session }).catch(unlessUnreadable);
  if (session?.archive !== undefined && session.archive !== id) {
    await deleteSession(store, { id: session.archive, owner });
  }
  await earlier?.delete(id, { owner });
  for (const keys of groupsOf([...hidden ?? [], key])) await journal.delete(...keys);
}

/** Returns keys in groups. A database that takes one key after another must end within the deadline of a call. */
function groupsOf(keys: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(keys.length / 50) }, (_, group) => keys.slice(group * 50, (group + 1) * 50));
}

/** The most requests of a session, the latest ones, whose keys are looked up. Older ones have expired, or will soon. */
const latestRequests = 500;

/** Returns the keys of the journals that are not listed and belong to the runs of a session. */
async function hiddenKeys(
  journal: Journal,
  { id, key, head: { owner, run, state, last, events }, session }: {
    readonly id: string;
    readonly key: string;
    readonly head: JournalHead;
    readonly session: SessionHead | undefined;
  },
): Promise<readonly string[]> {
  const idOf = (run: number) => runIdOf({ key, run });
  const reports = new Set(state === "paused" ? [reportKey({ run: idOf(run), owner }, events)] : []);
  const requests: string[] = [];
  for (const id of [session?.run?.id, session?.last?.run]) {
    if (id !== undefined) reports.add(reportKey({ run: id, owner })); // an earlier version may have made it
  }
  for (const [, entry] of await journal.entries(key, 1, last)) {
    if (entry.type !== "begun") continue;
    const runName = { run: idOf(entry.run), owner };
    reports.add(reportKey(runName)).add(reportKey(runName, entry.after)); // a run continues after the event of its pause
    if (entry.request !== undefined) requests.push(entry.request);
  }
  const requestKeys: string[] = [];
  for (const group of groupsOf(requests.slice(-latestRequests))) {
    const heads = await Promise.all(group.map((request) => journal.head(request)));
    requestKeys.push(...group.filter((_, index) => heads[index]?.head.includes(`"session":${JSON.stringify(id)}`))); // another session may have the key since
  }
  return [...reports, ...requestKeys];
}

/** Returns nothing for the error of a session that cannot be read, which can be deleted all the same. Throws any other error. */
export function unlessUnreadable(error: unknown): undefined {
  if (!(error instanceof UnreadableError)) throw error;
}
