/**
 * The journal port: one record for each session. A journal is a small head, an append-only list of numbered entries, and the event lines of the session's runs.
 *
 * Three rules carry everything else:
 *
 * 1. `append()` stores progress, the events that show it, the head and the lease together, or nothing. So no client has read what is not stored.
 * 2. `append()` moves the mark. It succeeds if the stored mark is `from`, and also if it is already `to`: an append that is repeated is one append. So the mark
 *    keeps away a process that has lost the session, and a claim is an append with a new holder.
 * 3. `post()` adds mail, and never moves the mark. An append with a change asserts the number of the last entry, so no mail stays unread.
 *
 * @module
 */
import type { Entry } from "./entries.ts";
import { sha256 } from "./lib/sha256.ts";
import type { Mail } from "./session.ts";

// The ids of journals and runs.

/** A run's place: the key of its journal, and its number in the session. */
export interface RunPlace {
  /** The key of the journal. */
  readonly key: string;
  /** The number of the run, from 1. */
  readonly run: number;
}

/**
 * Returns the key of the journal of a session: 22 characters that are safe in every database and URL, whatever the names contain. They are a hash, so the id of a
 * run does not show its session.
 */
export function journalKey(owner: string | undefined, session: string): string {
  const hash = sha256(new TextEncoder().encode(JSON.stringify([owner ?? null, session])));
  const base64 = btoa(String.fromCharCode(...hash.subarray(0, 18))).slice(0, 22);
  return base64.replaceAll("+", "-").replaceAll("/", "_");
}

/** Returns the id of a run. It tells the run's place, so that no index of runs is needed. */
export function runIdOf({ key, run }: RunPlace): string {
  return `${key}-${run}`;
}

/** Returns the place of a run; undefined for an id that no journal has made. */
export function placeOf(id: string): RunPlace | undefined {
  const [, key, run] = /^([\w-]{22})-([1-9]\d{0,14})$/.exec(id) ?? [];
  return key === undefined ? undefined : { key, run: Number(run) };
}

/** Returns the key of what remembers to report the end of a run, or its pause at an event. No session has such a name. */
export function reportKey(
  { run, owner }: { readonly run: string; readonly owner?: string | undefined },
  ...pausedAt: readonly number[]
): string {
  return journalKey(owner, `\0report${JSON.stringify([run, ...pausedAt])}`);
}

// Mail: requests of processes that do not hold the session.

/** A request to a running run, of a process that does not hold the session. */
export type PostedMail = Mail | { readonly type: "stop"; readonly reason: string; readonly rollback?: boolean };

/** Mail as an entry. Readers drop a second entry with the same id, since a post may be repeated. */
export interface MailEntry {
  /** The type of the entry. */
  readonly type: "mail";
  /** The id of the post, a random text. */
  readonly id: string;
  /** The request that was posted. */
  readonly mail: PostedMail;
}

// Marks, entries and events.

/** Identifies an append: the writer makes it before it appends, so that it can repeat an append whose acknowledgement was lost. */
export interface Mark {
  /** A random text. Each writer that does not have the session takes a new one. */
  readonly holder: string;
  /** The number of the append, which is the version of the session. */
  readonly n: number;
}

/** Returns true if two marks are of the same append. */
export function isSameMark(a: Mark | undefined, b: Mark | undefined): boolean {
  return a !== undefined && a.holder === b?.holder && a.n === b.n;
}

/** A run ends or pauses. Its last line tells more. */
export interface EndedEntry {
  /** The type of the entry. */
  readonly type: "ended";
  /** The number of the run. */
  readonly run: number;
  /** Its status, "paused", "failed", "aborted" or "withdrawn". */
  readonly as: string;
  /** The reason of that end, if its last event tells it. */
  readonly reason?: string;
  /** A time in milliseconds since 1970. */
  readonly at: number;
}

/** The end of a run, or of its continuation, whose claim was undone. */
export const withdrawn = "withdrawn";

/** An entry of a journal. A database keeps it as JSON, and does not read it. */
export type JournalEntry =
  | Entry
  | MailEntry
  /** A run begins, or continues after a pause. `after` is the number of the event before its first one, and `request` the id of the request. */
  | { readonly type: "begun"; readonly run: number; readonly after: number; readonly request?: string }
  | EndedEntry;

/** An entry and its number. Entries are numbered from 1, without a gap. */
export type NumberedJournalEntry = readonly [number: number, entry: JournalEntry];

/** Events of one run. They are numbered from 1. */
export interface JournalLines {
  /** The number of the first line. */
  readonly first: number;
  /** The events, each as JSON on one line. */
  readonly lines: readonly string[];
}

/** A page of a run's events. */
export interface JournalPage extends JournalLines {
  /** The number of the run's last event. If the lines end before it, there are more pages. If they begin after the next event, earlier ones were deleted. */
  readonly last: number;
  /** Whether the run has ended or paused with that event. */
  readonly over: boolean;
  /** The session, if it is listed, and its owner. */
  readonly session: string | undefined;
  /** The owner of the session; undefined: it has none. */
  readonly owner: string | undefined;
}

// Heads, appends and posts.

/** The state of a session's last run. "running": it works, or its process has died. "over": there is none, or it has ended. */
export type RunState = "running" | "paused" | "over";

/** The states, by the number with which databases store them. */
export const runStates: readonly RunState[] = ["over", "paused", "running"];

/** The part of a head that an append replaces as a whole. */
export interface HeadChange {
  /** The number of the session's last run, from 1; 0: there was none. A new number begins new events. */
  readonly run: number;
  /** Whether the run works. */
  readonly state: RunState;
  /** The number of the entry from which on `open()` reads. */
  readonly base: number;
  /** The number of counted posts that the run has not taken. */
  readonly waiting: number;
  /** The session without its messages, as JSON. */
  readonly head: string;
}

/** The head of a journal. */
export interface JournalHead extends HeadChange {
  /** The id of the session; undefined for a journal that is not listed, such as an idempotency key. */
  readonly session: string | undefined;
  /** The owner of the session; undefined: it has none. */
  readonly owner: string | undefined;
  /** The mark of the last append. */
  readonly mark: Mark;
  /** The number of the last entry; 0: there is none. */
  readonly last: number;
  /** The number of the last event of run `run`; 0: there is none. */
  readonly events: number;
  /** Milliseconds until another process must look, by the clock of the database; 0 or less: it is due. Null: not at all. */
  readonly due: number | null;
}

/** A head, and the entries from `base` on, as one append or post left them. */
export interface OpenedJournal extends JournalHead {
  /** The entries, in order. */
  readonly entries: readonly NumberedJournalEntry[];
}

/** The properties of a new journal. They never change. */
export interface Created {
  /** The id of the session. Default: the journal is not listed. */
  readonly session?: string | undefined;
  /** The owner of the session. Default: it has none. */
  readonly owner?: string | undefined;
  /** Milliseconds after its last change, or after the end of its lease, that the journal is deleted. Default: that of the database. */
  readonly expireIn?: number | undefined;
}

/** A change of a session: a new head and new entries. */
export interface JournalChange extends HeadChange {
  /** The number of the last entry. If there is a later one, nothing is stored: mail has arrived, which the writer reads first. */
  readonly last: number;
  /** The entries to append, numbered from `last + 1`. */
  readonly entries: readonly JournalEntry[];
}

/** An append: one transition of a journal. */
export interface Append {
  /** The stored mark; undefined to create the journal. */
  readonly from: Mark | undefined;
  /** The mark to store. A process that does not hold the session takes a new, random holder. */
  readonly to: Mark;
  /** The properties of a new journal, which needs a change too. */
  readonly created?: Created;
  /** Default: the head stays as it is, and no entry is added. */
  readonly change?: JournalChange;
  /** Events of the last run: of `change.run` if there is a change. A journal may begin with later events than 1, and without lines. Default: none. */
  readonly events?: JournalLines;
  /** Milliseconds from now until another process must look; null: not at all. Default: the time stays, so that an index of it is not changed. */
  readonly due?: number | null;
}

/** The outcome of an append. */
export interface Appended {
  /** False if nothing was stored, because mail has arrived after `change.last`. */
  readonly stored: boolean;
  /** The number of the last entry. A higher one than the writer knows: mail has arrived. */
  readonly last: number;
}

/** A post. */
export interface Post {
  /** The number of the run, which must be the last one, and running. */
  readonly run: number;
  /** The mail. */
  readonly entry: MailEntry;
  /** The most counted posts that may wait, with this one. Default: it is not counted. */
  readonly most?: number;
}

/** The outcome of a post: it was stored, its run is paused or over, or too many wait. */
export type Posted =
  | { readonly status: "posted"; readonly last: number }
  | { readonly status: "over" }
  | { readonly status: "full" };

// The port.

/** Receives the changes of a journal. */
export interface JournalWatcher {
  /** The journal may have changed. `isPost` tells whether mail was posted, if that is known. */
  notify(isPost?: boolean): void;
  /** No more notifications will come. */
  fail(error: unknown): void;
}

/** The options of `list()`. */
export interface JournalListOptions {
  /** The owner. Default: the sessions without an owner. */
  readonly owner?: string | undefined;
  /** Returns only sessions after this one. Default: all. */
  readonly after?: string;
  /** The number of sessions. Default: 100. */
  readonly limit?: number;
}

/** The operations of a database that keeps journals. Claims, folds, followers and recovery are written once, above it. Keys are those of `journalKey()`. */
export interface Journal {
  /** Returns the head of a journal, or undefined if there is none. */
  head(key: string): Promise<JournalHead | undefined>;
  /** Returns the head of a journal and its entries from `base` on, or undefined if there is none. */
  open(key: string): Promise<OpenedJournal | undefined>;
  /** Returns the entries from number `first` to number `last` that are stored, without reading those before. */
  entries(key: string, first: number, last: number): Promise<readonly NumberedJournalEntry[]>;
  /**
   * Appends all of it or nothing. Returns undefined, and stores nothing, if the stored mark is neither `from` nor `to`: another process has the session, or it was
   * deleted. A rejection leaves open whether it was stored: repeat the same append.
   */
  append(key: string, append: Append): Promise<Appended | undefined>;
  /** Adds mail to a running run. The mark stays. */
  post(key: string, post: Post): Promise<Posted>;
  /** Returns the first page of a run's events after event `after`. Returns undefined if there is no such run, or if an earlier run has no events left. */
  read(key: string, run: number, after: number): Promise<JournalPage | undefined>;
  /** Calls `notify()` after each append, post and delete of this process, and of others if the database tells. Returns the function that ends it. */
  watch(key: string, watcher: JournalWatcher): () => void;
  /** Milliseconds after which watchers look for changes of other processes themselves. Default: the database tells of them. */
  readonly pollEvery?: number;
  /** Milliseconds for which a writer gathers events that show no progress, such as deltas. Default: 0. */
  readonly deltasEvery?: number;
  /** Returns the keys of at most `limit` journals that are due, or will be `within` milliseconds (default: 0), the earliest first. An index must find them. */
  pending(limit: number, within?: number): Promise<readonly string[]>;
  /** Returns the ids of an owner's sessions, in the order of their UTF-8 bytes or UTF-16 code units. An index must find them. */
  list(options?: JournalListOptions): Promise<readonly string[]>;
  /** Stores the events of a run that is over in less room. Readers see no difference. Default: they stay as they are. */
  pack?(key: string, run: number): Promise<void>;
  /** Deletes the events of runs before `run`, which are over. Entries stay. */
  trim(key: string, run: number): Promise<void>;
  /**
   * Deletes at most `limit` journals that have expired, and the events of as many of the rest of `limit` journals whose last run has been over for `keep`
   * milliseconds. Returns the number of both. If it is less than `limit`, nothing is left. Packs before, at most as often, the events of runs that are over and
   * whose process has not packed them. Indexes must find all of them.
   */
  sweep(limit: number, keep: number): Promise<number>;
  /** Deletes journals, in this order if it does not delete them at once. No append that knows a mark of them is stored afterwards. */
  delete(...keys: string[]): Promise<void>;
}

// Parts that databases share.

/** A head without the time at which another process must look, which databases keep as a time. */
export type TimelessHead = Omit<JournalHead, "due">;

/** Throws a `TypeError` for an append that creates a journal without its head. */
export function expectHead({ from, change }: Append): void {
  if (!from && !change) throw new TypeError("Cannot create a journal: expected a change with its head");
}

/** Returns the outcome of an append that has moved nothing. `head` is the stored one. */
export function outcomeOf(
  { from, to, change }: Append,
  head: Pick<JournalHead, "mark" | "last"> | undefined,
): Appended | undefined {
  if (!head) return undefined;
  const { mark, last } = head;
  if (isSameMark(mark, to)) return { stored: true, last }; // it is repeated
  return isSameMark(mark, from) && change !== undefined && change.last !== last ? { stored: false, last } : undefined;
}

/** Returns the head that an append makes of the stored one, if it is to be stored; otherwise `outcomeOf()` tells its outcome. */
export function headAfter(append: Append, stored: TimelessHead | undefined): TimelessHead | undefined {
  const { from, to, created: { session, owner } = {}, change, events } = append;
  expectHead(append);
  if (stored ? !isSameMark(stored.mark, from) || (change && change.last !== stored.last) : from) return undefined;
  const none = { run: 0, state: "over", base: 1, waiting: 0, head: "", last: 0, events: 0 } as const;
  const old: TimelessHead = stored ?? { session, owner, mark: to, ...none };
  const { run, state, base, waiting, head }: HeadChange = change ?? old;
  const before = run === old.run ? old.events : 0;
  return {
    ...{ session: old.session, owner: old.owner, mark: { ...to }, run, state, base, waiting, head },
    last: old.last + (change?.entries.length ?? 0),
    events: events ? events.first + events.lines.length - 1 : before,
  };
}

/** The watchers of the journals of one process. */
export interface JournalWatchers {
  /** Watches a journal. */
  readonly watch: Journal["watch"];
  /** Notifies the watchers of a journal. */
  notify(key: string, isPost?: boolean): void;
  /** Whether a journal has watchers. */
  has(key: string): boolean;
}

/** Creates the watchers of one process. */
export function journalWatchers(): JournalWatchers {
  const watching = new Map<string, Set<JournalWatcher>>();
  return {
    watch(key, watcher) {
      const own = watching.get(key) ?? new Set();
      const each = { ...watcher }; // one watcher may watch twice
      watching.set(key, own.add(each));
      return () => {
        own.delete(each);
        if (own.size === 0 && watching.get(key) === own) watching.delete(key);
      };
    },
    notify(key, isPost) {
      for (const watcher of [...watching.get(key) ?? []]) watcher.notify(isPost);
    },
    has: (key) => watching.has(key),
  };
}
