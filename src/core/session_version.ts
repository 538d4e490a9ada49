/**
 * Versions of a session: a session as its journal has it, and the change that makes the next version of it.
 *
 * @module
 */
import {
  changeTo,
  emptyTranscript,
  type Entry,
  historyOf,
  type NumberedMessages,
  type StoredTranscript,
  transcriptOf,
} from "./entries.ts";
import {
  type EndedEntry,
  type Journal,
  type JournalChange,
  type JournalEntry,
  type JournalHead,
  journalKey,
  type MailEntry,
  type Mark,
  type NumberedJournalEntry,
  type OpenedJournal,
  type RunState,
  withdrawn,
} from "./journal.ts";
import { outline, referencesIn, restore } from "./large_values.ts";
import type { Session, SessionHead, Unsaved } from "./session.ts";
import { checkFormat, checkHead, formatFor, type FormattedHead, inCurrentForm } from "./session_format.ts";
import { type HistoryOptions, type HistoryPage, type SessionName, type Store, UnreadableError } from "./store.ts";
import type { Message } from "../protocol/message.ts";

// The version of a session, and the save that makes the next one.

/** The parts of a change beside the session. */
export interface ChangeOptions {
  /** The holder of the next mark. */
  readonly holder: string;
  /** The number of the session's last run. */
  readonly run: number;
  /** The number of counted posts that the run has not taken. */
  readonly waiting: number;
  /** The number of the last entry whose mail the session contains. */
  readonly readUntil: number;
  /** Entries after those of the session. Default: none. */
  readonly more?: readonly JournalEntry[];
}

/** The fields of a head that the next one needs. */
interface KeptFields {
  readonly compactions?: number;
  readonly archive?: SessionHead["archive"];
}

/** A change that makes a session of its stored version, with its marks, and the version that it makes. */
export interface NextVersion {
  readonly from: Mark | undefined;
  readonly to: Mark;
  readonly change: JournalChange;
  readonly version: SessionVersion;
}

/** A stored version of a session, or that of no session. A writer keeps it from one save to the next, so that it appends only what is new. */
export class SessionVersion {
  readonly mark: Mark | undefined;
  readonly #transcript: StoredTranscript;
  /** The numbers of the large values of the head, by their JSON. */
  readonly #values: ReadonlyMap<string, number>;
  /** The fields of the head that the next one needs. */
  readonly #kept: Partial<FormattedHead>;

  private constructor(
    mark: Mark | undefined,
    transcript: StoredTranscript,
    values: ReadonlyMap<string, number>,
    kept: Partial<FormattedHead>,
  ) {
    this.mark = mark;
    this.#transcript = transcript;
    this.#values = values;
    this.#kept = kept;
  }

  /** The version of no session. */
  static readonly none: SessionVersion = new SessionVersion(undefined, emptyTranscript, new Map(), {});

  /** Returns the version of a session that was opened, or of a head and its large values, which changes no transcript. */
  static of(
    { mark, base, last }: Pick<JournalHead, "mark" | "base" | "last">,
    transcript: NumberedMessages,
    values: ReadonlyMap<number, unknown>,
    head: FormattedHead,
  ): SessionVersion {
    const numbers = new Map(Array.from(values, ([number, value]) => [JSON.stringify(value), number]));
    return new SessionVersion(mark, { ...transcript, base, last }, numbers, head);
  }

  /** The number of the last entry; 0: there is none. */
  get last(): number {
    return this.#transcript.last;
  }

  /** The number of the save; 0 for no session. */
  get n(): number {
    return this.mark?.n ?? 0;
  }

  /** Returns this version with a later mark or last entry, which has not changed the session. */
  followedBy({ mark, last }: Pick<SessionVersion, "mark" | "last">): SessionVersion {
    return new SessionVersion(mark, { ...this.#transcript, last }, this.#values, this.#kept);
  }

  /** Returns the change that makes the next version of a session. Without messages, the transcript stays. */
  next(session: NextSession, { holder, run: number, waiting, readUntil, more = [] }: ChangeOptions): NextVersion {
    const { messages = this.#transcript.messages, version: _, mail: __, readUntil: ___, lease, ...rest } = session;
    const { compactions = 0, run, archive = this.#kept.archive } = rest;
    const isCompaction = compactions > (this.#kept.compactions ?? 0);
    const { entries: changes, stored } = changeTo(messages, this.#transcript, isCompaction);
    const known = stored.base === this.#transcript.base ? this.#values : new Map<string, number>(); // values from before a base are not read
    const { last } = this.#transcript;
    const head = {
      format: formatFor(run),
      ...rest,
      ...timeless(lease),
      ...(readUntil > 0 && { readUntil }),
      ...(archive !== undefined && { archive }),
    };
    const { text, added, numbers } = outline(head, known, last + changes.length + 1);
    const values = added.map((value): Entry => ({ type: "value", value: JSON.parse(value) }));
    const entries = [...changes, ...values, ...more];
    const state: RunState = !run ? "over" : run.exit ? "paused" : "running";
    const to = { holder, n: this.n + 1 };
    const transcript = { ...stored, last: last + entries.length };
    return {
      from: this.mark,
      to,
      change: { run: number, state, base: stored.base, waiting, head: text, last, entries },
      version: new SessionVersion(to, transcript, numbers, { compactions, ...(archive !== undefined && { archive }) }),
    };
  }
}

/** The session to save next. Without messages, the transcript stays. */
type NextSession = Omit<SessionHead, "version"> & { readonly version?: number; readonly messages?: readonly Message[] };

/** Returns a lease as it is stored, if it tells more than its time. */
function timeless(lease: Session["lease"]): Pick<FormattedHead, "lease"> {
  const { until: _, ...flags } = lease ?? {};
  return Object.keys(flags).length > 0 ? { lease: flags } : {};
}

// Opening: the fold of a journal's entries.

/** A session as its journal has it. */
export interface OpenedSession<S extends SessionHead = Session> {
  readonly head: JournalHead;
  /** The session, with the run that has it. Its messages cannot be changed. */
  readonly session: S;
  readonly version: SessionVersion;
  /** The mail that the run has not taken, in order, each once. None of it was posted before the base. */
  readonly mail: readonly MailEntry[];
  /** The ids of all mail that was read. */
  readonly mailIds: ReadonlySet<string>;
  /** The requests that have begun or continued a run since the base, by their idempotency ids. */
  readonly requests: ReadonlyMap<string, BegunRequest>;
  /** The ends and pauses of runs since the base, in order. */
  readonly ends: readonly EndedEntry[];
}

/** The start of a run for a request. */
export interface BegunRequest {
  /** The number of the run. */
  readonly run: number;
  /** The number of the event before its first one. */
  readonly after: number;
}

/** Reads a session of a store with `read`, such as `openSession()`. One that an earlier version of the package has stored is moved to a journal before. */
export async function readStored<T>(
  { journal, earlier }: Pick<Store, "journal" | "earlier">,
  { id, owner }: SessionName & { readonly id: string },
  read: (journal: Journal, key: string) => Promise<T | undefined>,
): Promise<T | undefined> {
  const key = journalKey(owner, id);
  const found = await read(journal, key);
  if (found !== undefined || !await earlier?.move(id, { owner })) return found;
  return await read(journal, key);
}

/** Opens a session. Throws an `UnreadableError` if it is damaged or if a newer version of the package has written it. */
export async function openSession(journal: Journal, key: string): Promise<OpenedSession | undefined> {
  const opened = await journal.open(key);
  return opened && readSession(opened, opened.session ?? key);
}

/** Reads a session that was opened, as `openSession()` does. */
export function readSession(opened: OpenedJournal, id: string): OpenedSession {
  const { base, last, entries, ...head } = opened;
  return readable(id, () => {
    checkFormat(opened.head);
    if (entries.length < last - base + 1) {
      throw new TypeError(`it has ${entries.length} of its entries ${base} to ${last}`);
    }
    return read({ ...head, base, last }, entries, id);
  });
}

/** Reads a session without its messages, as `openSession()` reads a whole one. Mail is not read. */
export async function openHead(journal: Journal, key: string): Promise<OpenedSession<SessionHead> | undefined> {
  const head = await journal.head(key);
  if (!head) return undefined;
  const id = head.session ?? key;
  const numbers = readable(id, () => {
    checkFormat(head.head);
    return referencesIn(head.head);
  });
  const entries = await readValues(journal, key, numbers);
  const { session: { messages: _, ...session }, ...opened } = readable(id, () => read(head, entries, id));
  return { ...opened, session };
}

/** Reads the large values with these numbers, and those that they refer to, which may be older. */
async function readValues(
  journal: Journal,
  key: string,
  numbers: readonly number[],
): Promise<readonly NumberedJournalEntry[]> {
  const found = new Map<number, NumberedJournalEntry>();
  for (let missing = numbers; missing.length > 0;) {
    const [first, last] = [Math.min(...missing), Math.max(...missing)];
    const read = await journal.entries(key, first, last);
    for (const entry of read) found.set(entry[0], entry);
    const nested = missing.flatMap((number) => {
      const entry = found.get(number)?.[1];
      return entry?.type === "value" ? referencesIn(JSON.stringify(entry.value)) : [];
    });
    missing = nested.filter((number) => !found.has(number));
  }
  return [...found.values()];
}

/** Parses what a journal has returned. A failure names the session. */
function readable<T>(id: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new UnreadableError(`Cannot read session "${id}": ${cause instanceof Error ? cause.message : ""}`, { cause });
  }
}

function read(stored: JournalHead, entries: readonly NumberedJournalEntry[], id: string): OpenedSession {
  const values = new Map<number, unknown>();
  const posted = new Map<string, readonly [number: number, entry: MailEntry]>();
  for (const [number, entry] of entries) {
    if (entry.type === "value") values.set(number, entry.value);
    if (entry.type === "mail" && !posted.has(entry.id)) posted.set(entry.id, [number, entry]);
  }
  const missing = referencesIn(stored.head).find((number) => !values.has(number));
  if (missing !== undefined) throw new TypeError(`its entry ${missing} is missing`);
  const head = inCurrentForm(restore(stored.head, values));
  checkHead(head);
  const { format: _, lease, run, ...rest } = head;
  const transcript = transcriptOf(entries);
  const { readUntil = 0 } = rest;
  const mail = [...posted.values()].flatMap(([number, entry]) => number > readUntil ? [entry] : []);
  const unread = mail.flatMap(({ mail }) => mail.type === "stop" ? [] : [mail]);
  const session: Session = {
    ...rest,
    ...(run && { run: run.exit ? run : { ...run, events: Math.max(run.events, stored.events) } }), // deltas are stored without the head
    id,
    version: stored.mark.n,
    messages: freeze(transcript.messages),
    ...(stored.due !== null && { lease: { ...lease, until: Math.ceil(Date.now() + stored.due) } }),
    ...(unread.length > 0 && { mail: unread }),
  };
  const version = SessionVersion.of(stored, transcript, values, head);
  return {
    head: stored,
    session,
    version,
    mail,
    mailIds: new Set(posted.keys()),
    requests: requestsIn(entries),
    ends: entries.flatMap(([, entry]) => entry.type === "ended" ? [entry] : []),
  };
}

/** Returns the requests that have begun or continued a run, by their idempotency ids. One whose claim was undone has not. */
export function requestsIn(entries: readonly NumberedJournalEntry[]): ReadonlyMap<string, BegunRequest> {
  const requests = new Map<string, BegunRequest>();
  let latest: string | undefined;
  for (const [, entry] of entries) {
    if (entry.type === "ended" && entry.as === withdrawn && latest !== undefined) requests.delete(latest);
    if (entry.type !== "begun") continue;
    const { request } = entry;
    latest = request !== undefined && !requests.has(request) ? request : undefined;
    if (latest !== undefined) requests.set(latest, entry);
  }
  return requests;
}

// Whole sessions, for callers that do not hold them.

/** Stores a whole session as the next version of the opened one, or as version `n`. Resolves to false if another process was faster. */
export async function storeSession(
  journal: Journal,
  key: string,
  { mail = [], ...session }: Unsaved,
  opened?: OpenedSession,
  n?: number,
): Promise<boolean> {
  const { head, version } = opened ?? { head: undefined, version: SessionVersion.none };
  const isNew = session.run !== undefined && session.run.id !== opened?.session.run?.id;
  const run = (head?.run ?? 0) + (isNew ? 1 : 0);
  const more = mail.map((mail): MailEntry => ({ type: "mail", id: crypto.randomUUID(), mail }));
  const waiting = mail.filter(({ type }) => type === "message").length;
  const readUntil = version.last;
  const { from, to: next, change } = version.next(session, {
    holder: crypto.randomUUID(),
    run,
    waiting,
    readUntil,
    more,
  });
  const to = { ...next, n: n ?? next.n };
  const { id, owner, lease } = session;
  const due = lease ? Math.ceil(lease.until - Date.now()) : null;
  const created = { session: id, owner };
  const events = session.run && { events: { first: session.run.events + 1, lines: [] } }; // a run that continues here continues their numbers
  return (await journal.append(key, { from, to, change, due, ...(!opened && { created, ...events }) }))?.stored ===
    true;
}

/** Reads a page of a session's history. */
export async function historyIn(
  journal: Journal,
  key: string,
  { before = Infinity, limit = 100 }: HistoryOptions = {},
): Promise<HistoryPage | undefined> {
  const head = await journal.head(key);
  if (!head) return undefined;
  readable(head.session ?? key, () => checkFormat(head.head));
  const all = historyOf(await journal.entries(key, 1, head.last));
  const earlier = all.filter(([number]) => number < before);
  const page = earlier.slice(-limit);
  const numbers = page.map(([number]) => number);
  return {
    messages: page.map(([, message]) => message),
    numbers,
    before: page.length < earlier.length ? numbers[0] : undefined,
  };
}

/** Freezes a value and everything in it, so that a change in place of what is stored once, which no save would store, throws. */
export function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}
