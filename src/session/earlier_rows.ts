/**
 * Sessions that versions of the package before journals have stored, in rows of their own: each is stored in a journal before it is read.
 *
 * @module
 */
import {
  type Append,
  type Journal,
  journalKey,
  type MailEntry,
  type NumberedJournalEntry,
  reportKey,
} from "../core/journal.ts";
import type { Session } from "../core/session.ts";
import { inCurrentForm } from "../core/session_format.ts";
import { readSession, SessionVersion } from "../core/session_version.ts";
import { type EarlierSessions, type Store, UnreadableError } from "../core/store.ts";
import { durable } from "./durable/mod.ts";
import { ownedKey } from "./owned_key.ts";

/** A row: the head of a session and its entries, or a whole session of version 0.1.0, which has none. */
export interface EarlierRow {
  /** The number of its last save. */
  readonly n: number;
  /** The head as JSON, which begins with its format. A whole session has no format. */
  readonly head: string;
  /** The number of the entry from which on a session is read. */
  readonly base: number;
  /** All entries, from number 1. */
  readonly entries: readonly NumberedJournalEntry[];
  /** Milliseconds until its lease ends, by the clock that has set it. Null: it has none. */
  readonly due: number | null;
}

/** The rows of a database, by key: the id of a session, or `ownedKey()` of one with an owner. Those that have expired count as none. */
export interface EarlierRows {
  /** Returns false if the database has no such rows. Then nothing else is asked. */
  exist(): Promise<boolean>;
  read(key: string): Promise<EarlierRow | undefined>;
  delete(key: string): Promise<void>;
  /** Returns the keys of at most `limit` rows whose lease has ended, or will within `within` milliseconds, the earliest first. */
  pending(limit: number, within: number): Promise<readonly string[]>;
  /** Returns at most `limit` keys after a key, in the order of their code points. */
  list(after: string, limit: number): Promise<readonly string[]>;
}

/** The beginning of the keys of rows that are no sessions: each remembers that the end of a run has to be reported. */
const hidden = "\u{10ffff}";

/** Makes a store of journals and of the rows of earlier versions. A row becomes a journal once it is read or its lease has ended. */
export function storeOf(journal: Journal, rows: EarlierRows): Store {
  /** Whether there are rows, once that is known. A promise would end with the request that has asked, on Cloudflare Workers. */
  let existing: boolean | undefined;
  /** The keys of rows that could not be moved, each of which has been reported. */
  const unreadable = new Set<string>();

  async function exist(): Promise<boolean> {
    return existing ??= await rows.exist();
  }

  /** Stores a row in a journal, unless that has been created meanwhile. Returns the session. */
  async function moveRow(key: string, isAllowed: (owner?: string) => boolean): Promise<Session | undefined> {
    const row = await rows.read(key);
    if (!row) return undefined;
    const { session, target, append } = moved(row, key);
    if (!isAllowed(session.owner)) return undefined;
    await journal.append(target, append);
    await rows.delete(key);
    return session;
  }

  /** Moves a session, and what remembers to report the end of its run. */
  async function moveSession(key: string, isAllowed: (owner?: string) => boolean): Promise<boolean> {
    const session = await moveRow(key, isAllowed);
    const { run, owner = "" } = session ?? {};
    if (run) await moveRow(hidden + JSON.stringify([owner, run.id]), isAllowed);
    return session !== undefined;
  }

  /** Moves the rows that are due. Throws once for one that cannot be read, which stays as it is. */
  async function moveDue(limit: number, within: number): Promise<void> {
    const failures: (readonly [key: string, error: UnreadableError])[] = [];
    for (const key of await rows.pending(limit + unreadable.size, within)) {
      if (unreadable.has(key)) continue;
      try {
        if (!await moveSession(key, () => true)) await rows.delete(key); // the index was behind
      } catch (error) {
        if (!(error instanceof UnreadableError)) throw error;
        failures.push([key, error]);
      }
    }
    const [first] = failures;
    if (!first) return;
    unreadable.add(first[0]); // the others are reported by the next calls
    throw first[1];
  }

  /** Lists the sessions of an owner that have not moved. */
  async function listRows(owner: string | undefined, after: string, limit: number): Promise<readonly string[]> {
    const ids: string[] = [];
    const beginning = owner === undefined ? "" : ownedKey(owner, "").slice(0, -2);
    for (let from = after === "" ? beginning : ownedKey(owner, after); ids.length < limit;) {
      const keys = await rows.list(from, limit);
      for (const key of keys) {
        const [keyOwner, id] = namesIn(key);
        if (keyOwner === owner && !key.startsWith(hidden)) ids.push(id);
      }
      from = keys.at(-1) ?? "";
      if (keys.length < limit || !from.startsWith(beginning)) break;
    }
    return ids;
  }

  const earlier: EarlierSessions = {
    async move(id, { owner } = {}) {
      if (!await exist()) return false;
      await moveSession(ownedKey(owner, id), (rowOwner) => rowOwner === owner);
      return true;
    },
    async delete(id, { owner } = {}) {
      if (await exist()) await rows.delete(ownedKey(owner, id));
    },
  };
  return durable({
    ...journal,
    async pending(limit, within = 0) {
      if (await exist()) await moveDue(limit, within);
      return await journal.pending(limit, within);
    },
    async list(options = {}) {
      const { owner, after = "", limit = 100 } = options;
      const ids = await journal.list(options);
      if (!await exist()) return ids;
      const all = new Set([...ids, ...await listRows(owner, after, limit)]);
      return [...all].sort(byCodePoints).slice(0, limit);
    },
  }, earlier);
}

/** Returns the owner and the id in a key. */
function namesIn(key: string): readonly [owner: string | undefined, id: string] {
  try {
    const [owner, id] = JSON.parse(key);
    return key === ownedKey(owner, id) ? [owner, id] : [undefined, key];
  } catch {
    return [undefined, key]; // an id that is no list as JSON
  }
}

/** A row as a journal. */
interface MovedRow {
  readonly session: Session;
  /** The key of the journal, and the append that creates it. */
  readonly target: string;
  readonly append: Append;
}

/** Returns a row as a journal. Throws an `UnreadableError` if it is damaged. */
function moved(row: EarlierRow, key: string): MovedRow {
  let id = key;
  try {
    const { owner }: Partial<Session> = Object(JSON.parse(row.head));
    if (owner !== undefined) id = namesIn(key)[1];
    if (!key.startsWith(hidden)) return movedTo(row, id);
    const [, run, ...pausedAt] = JSON.parse(key.slice(hidden.length));
    const target = reportKey({ run, ...(owner !== undefined && { owner }) }, ...pausedAt);
    return movedTo(row, target, target);
  } catch (cause) {
    if (cause instanceof UnreadableError) throw cause;
    throw new UnreadableError(`Cannot read session "${id}": ${cause instanceof Error ? cause.message : ""}`, { cause });
  }
}

/** Returns a row as the journal of session `id`, or as one with the key `target`, which is not listed. */
function movedTo({ n, head, base, due, entries: kept }: EarlierRow, id: string, target?: string): MovedRow {
  const mark = { holder: crypto.randomUUID(), n };
  const common = { session: id, owner: undefined, mark, run: 1, state: "over", waiting: 0, events: 0, due } as const;
  const isWhole = !head.startsWith('{"format":'); // a text in it may look like a reference to a value
  const opened = isWhole
    ? { session: { ...inCurrentForm(JSON.parse(head)), id }, version: SessionVersion.none }
    : readSession({ ...common, head, base, last: kept.length, entries: kept.slice(base - 1) }, id);
  const { mail = [], writer: _, ...session }: Session & { readonly writer?: unknown } = opened.session; // format 1 has a writer
  const more = mail.map((mail): MailEntry => ({ type: "mail", id: crypto.randomUUID(), mail }));
  const { change: { entries: added, ...change } } = opened.version.next(session, {
    holder: mark.holder,
    run: session.run ? 1 : 0,
    waiting: mail.filter(({ type }) => type === "message").length,
    readUntil: kept.length,
    more,
  });
  const entries = [...kept.map(([, entry]) => entry), ...added];
  const numbered = entries.map((entry, index): NumberedJournalEntry => [index + 1, entry]);
  readSession({ ...common, ...change, last: entries.length, entries: numbered.slice(change.base - 1) }, id); // checks it
  const { owner } = session;
  const created = { owner, ...(target === undefined && { session: id }) };
  const append = { from: undefined, to: mark, created, change: { ...change, last: 0, entries }, due };
  return { session, target: target ?? journalKey(owner, id), append };
}

/** Compares keys by their code points, as databases do that order their UTF-8 bytes. */
export function byCodePoints(a: string, b: string): number {
  const [left, right] = [Array.from(a), Array.from(b)];
  const at = left.findIndex((character, index) => character !== right[index]);
  return at < 0 ? left.length - right.length : (left[at]?.codePointAt(0) ?? 0) - (right[at]?.codePointAt(0) ?? -1);
}
