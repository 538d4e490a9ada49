/**
 * A session in its journal: how it is opened, claimed and written, above the port and below the engine.
 *
 * @module
 */
import {
  type Append,
  type Appended,
  type Journal,
  type JournalChange,
  type JournalEntry,
  type JournalHead,
  type JournalLines,
  type MailEntry,
  type NumberedJournalEntry,
  type OpenedJournal,
  type RunState,
} from "./journal.ts";
import type { Session, Unsaved } from "./session.ts";
import { noSession, readSession, type SessionVersion } from "./session_version.ts";
import { type Mark, type OpenedSession, type Patience, withRetries } from "./store.ts";
import type { Event } from "../protocol/event.ts";

// Opening: the fold of a journal's entries.

/** A session as its journal has it. */
export interface JournalSession {
  readonly head: JournalHead;
  /** The session, with the run that has it. Its messages cannot be changed. */
  readonly session: Session;
  readonly version: SessionVersion;
  /** The mail that the run has not taken, in order, each once. None of it was posted before the base. */
  readonly mail: readonly MailEntry[];
  /** The ids of all mail that was read. */
  readonly mailIds: ReadonlySet<string>;
  /** The last event of the run that ended or paused last, if the journal has one since its base. */
  readonly ended: Event | undefined;
}

/** Opens a session. Throws an `UnreadableError` if it is damaged or if a newer version of the package has written it. */
export async function openJournal(journal: Journal, key: string): Promise<JournalSession | undefined> {
  const opened = await journal.open(key);
  return opened && sessionIn(key, opened);
}

/** Returns the session of a journal that was opened. */
function sessionIn(key: string, { entries, ...head }: OpenedJournal): JournalSession {
  const stored = { ...head, until: null, entries } as OpenedSession; // entries of other types are no part of the transcript
  const { session, version } = readSession(stored, head.session ?? key);
  if (!session) throw new TypeError("Cannot open a journal: it has no session");
  const mail = new Map<string, readonly [number: number, entry: MailEntry]>();
  let ended: Event | undefined;
  for (const [number, entry] of entries) {
    if (entry.type === "mail" && !mail.has(entry.id)) mail.set(entry.id, [number, entry]);
    if (entry.type === "ended") ended = entry.event;
  }
  const { taken = 0 } = session;
  const waiting = [...mail.values()].flatMap(([number, entry]) => number > taken ? [entry] : []);
  return { head, session, version, mail: waiting, mailIds: new Set(mail.keys()), ended };
}

// Claiming.

/** The options of a writer. */
export interface JournalWriterOptions {
  readonly journal: Journal;
  readonly key: string;
  /** Milliseconds after the last append or renewal that the run is lost. */
  readonly lease: number;
  /** Returns the milliseconds for which a failure of the database is retried, at least five times. Default: 0. */
  readonly patience?: Patience;
  /** Receives the mail that arrives, each once and in order, before the next change is read. */
  readonly onMail?: (entry: MailEntry) => void;
}

/** A decision to take a session: the session to store, with the run that has it from now on. */
export interface JournalClaim {
  readonly session: Unsaved;
  /** True if a new run begins. False if the session's last run continues. */
  readonly begins: boolean;
  /** The idempotency id of the request. */
  readonly request?: string | undefined;
  /** The properties of the session, if it is new. */
  readonly owner?: string | undefined;
  readonly expireIn?: number | undefined;
}

/** Decides about a claim. `run` is the number of a new run. It throws if the session cannot be claimed. */
export type DecideClaim = (opened: JournalSession | undefined, run: number) => JournalClaim | Promise<JournalClaim>;

/**
 * Claims a session, and returns its writer. It decides again if the session has changed meanwhile, but not if a claim of its own was stored whose acknowledgement
 * was lost. A session that is new continues the events of its run, as that of a resume token.
 */
export async function claimJournal(options: JournalWriterOptions, decide: DecideClaim): Promise<JournalWriter> {
  const { journal, key, lease, patience } = options;
  const holder = crypto.randomUUID();
  let failure: { readonly error: unknown } | undefined;
  for (;;) {
    const opened = await withRetries(() => openJournal(journal, key), patience);
    if (opened?.head.mark.holder === holder) return new JournalWriter(options, opened);
    if (failure) throw failure.error; // it was not stored, and is not repeated
    const { append, next } = claimOf(opened, holder, lease, await decide(opened, (opened?.head.run ?? 0) + 1));
    try {
      const outcome = await withRetries(() => journal.append(key, append), patience);
      if (outcome?.stored && outcome.last === next.head.last) return new JournalWriter(options, next);
    } catch (error) {
      failure = { error };
    }
  }
}

/** Returns the append of a claim, and the session once it is stored. */
function claimOf(
  opened: JournalSession | undefined,
  holder: string,
  lease: number,
  { session, begins, request, owner, expireIn }: JournalClaim,
): { readonly append: Append; readonly next: JournalSession } {
  const { run = 0, events = session.run?.events ?? 0, last = 0, waiting = 0 } = opened?.head ?? {};
  const number = begins || !opened ? run + 1 : run;
  const after = begins && opened ? 0 : events;
  const begun = { type: "begun", run: number, after, ...(request !== undefined && { request }) } as const;
  const { version } = opened ?? noSession;
  const mail = begins ? [] : opened?.mail ?? []; // a new prompt has taken the messages of the run before it
  const made = changeOf(version, { session, taken: begins ? last : opened?.session.taken ?? last }, {
    holder,
    run: number,
    waiting: begins ? 0 : waiting,
    more: [begun],
  });
  const { change, to } = made;
  const created = { session: session.id, owner: owner ?? session.owner, expireIn };
  const lines: JournalLines = { first: after + 1, lines: [] };
  const append: Append = { from: version.mark, to, change, due: lease, events: lines, ...(!opened && { created }) };
  const { owner: own = opened?.head.owner } = created;
  const head = {
    ...change,
    session: session.id,
    owner: own,
    mark: to,
    events: after,
    due: lease,
    last: made.version.last,
  };
  const next = {
    head,
    session: { ...session, version: to.n },
    version: made.version,
    mail,
    mailIds: opened?.mailIds ?? new Set<string>(),
    ended: undefined,
  };
  return { append, next };
}

/** The next session of a journal, with the number of the last entry whose mail it contains. */
interface NextSession {
  readonly session: Unsaved;
  readonly taken: number;
}

/** The parts of a change beside its session. */
interface ChangeParts {
  readonly holder: string;
  readonly run: number;
  readonly waiting: number;
  readonly more: readonly JournalEntry[];
}

/** Returns the change that makes a session of its stored version, its mark, and its version after that. */
function changeOf(
  stored: SessionVersion,
  { session, taken }: NextSession,
  { holder, run, waiting, more }: ChangeParts,
): { readonly change: JournalChange; readonly to: Mark; readonly version: SessionVersion } {
  const { addition: { to, head, entries, base, first }, version } = stored.next({ ...session, taken }, { holder });
  const state: RunState = !session.run ? "over" : session.run.exit ? "paused" : "running";
  const change = { run, state, base, waiting, head, last: first - 1, entries: [...entries, ...more] };
  return { change, to, version: version.followedBy({ mark: to, last: version.last + more.length }) };
}

// Writing.

/** Progress of a run, which one append stores. */
export interface JournalProgress {
  /** The session as it is now. It contains what the run has received: no other process receives that mail again. */
  readonly session: Unsaved;
  /** The events that show the progress, each as JSON on one line. */
  readonly lines?: readonly string[];
  /** The last event of the run, which ends or pauses with it. It is stored after the lines. */
  readonly ended?: Event;
  /** The number of messages that the run has received and not delivered. Default: 0. */
  readonly waiting?: number;
}

/** Writes a session that this process has claimed: one append at a time, in the order of the calls. Nothing is written after the session was lost. */
export class JournalWriter {
  readonly #options: JournalWriterOptions;
  readonly #holder: string;
  #version: SessionVersion;
  #run: number;
  /** The number of the run's last event. */
  #events: number;
  readonly #mailIds: Set<string>;
  /** The time of this process at which the stored lease ends. */
  #leaseEnd: number;
  #isOver = false;
  #isLost = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: JournalWriterOptions, { head, version, mail, mailIds }: JournalSession) {
    this.#options = options;
    this.#holder = head.mark.holder;
    this.#version = version.followedBy({ mark: head.mark, last: head.last });
    this.#run = head.run;
    this.#events = head.events;
    this.#mailIds = new Set(mailIds);
    this.#leaseEnd = Date.now() + (head.due ?? 0);
    for (const entry of mail) options.onMail?.(entry);
  }

  /** The number of the run. */
  get run(): number {
    return this.#run;
  }

  /** The number of the run's last event that is stored. */
  get events(): number {
    return this.#events;
  }

  /** True once another process has the session, or once the database has failed for too long. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /**
   * Stores the progress that `read` returns, together with the events that show it. `read` is called again if mail has arrived before that: the end of a run that
   * has mail must deliver it first. Resolves to false if the session was lost. Rejects if the database fails: then it is lost, too.
   */
  put(read: () => JournalProgress): Promise<boolean> {
    return this.#inTurn(async () => {
      for (;;) {
        const { session, lines = [], ended, waiting = 0 } = read();
        const all = ended ? [...lines, JSON.stringify(ended)] : lines;
        const at = Date.now();
        const more: readonly JournalEntry[] = ended ? [{ type: "ended", run: this.#run, event: ended, at }] : [];
        const parts = { holder: this.#holder, run: this.#run, waiting, more };
        const { change, version } = changeOf(this.#version, { session, taken: this.#version.last }, parts);
        const due = change.state === "running" ? this.#renewal() : { due: null };
        const outcome = await this.#append({ change, ...due }, all, version);
        if (outcome?.stored === false) continue;
        this.#isOver ||= ended !== undefined && outcome !== undefined;
        return outcome !== undefined;
      }
    });
  }

  /** Stores events that show no progress, such as deltas, and renews the lease if that is due. */
  emit(lines: readonly string[]): Promise<boolean> {
    return this.#inTurn(async () => await this.#append(this.#renewal(), lines) !== undefined);
  }

  /** Renews the lease of a run that writes nothing, and receives its mail. */
  renew(): Promise<boolean> {
    return this.#inTurn(async () => await this.#append({ due: this.#options.lease }, []) !== undefined);
  }

  /** Gives the session to another process, which continues the run as it is stored. This one writes nothing more. */
  async release(): Promise<boolean> {
    const isReleased = await this.#inTurn(async () => await this.#append({ due: 0 }, []) !== undefined);
    this.#isLost = true;
    return isReleased;
  }

  #inTurn(work: () => Promise<boolean>): Promise<boolean> {
    const done = this.#last.then(() => this.#isLost || this.#isOver ? !this.#isLost : work());
    this.#last = done.catch(() => {}); // the caller handles the failure
    return done;
  }

  /** Returns the lease to store: once a third of it has passed, since an index contains it. */
  #renewal(): { readonly due?: number } {
    const { lease } = this.#options;
    return this.#leaseEnd - Date.now() <= lease * 2 / 3 ? { due: lease } : {};
  }

  /** Appends until the outcome is known, and receives the mail that has arrived. Returns undefined if the session was lost. */
  async #append(
    parts: Pick<Append, "change" | "due">,
    lines: readonly string[],
    version?: SessionVersion,
  ): Promise<Appended | undefined> {
    const { journal, key, patience } = this.#options;
    const { mark: from, last: known, n } = this.#version;
    const to = { holder: this.#holder, n: n + 1 };
    const events = lines.length > 0 && { events: { first: this.#events + 1, lines } };
    const began = Date.now();
    try {
      const outcome = await withRetries(() => journal.append(key, { from, to, ...parts, ...events }), patience);
      if (!outcome) this.#isLost = true;
      if (outcome?.stored) {
        this.#version = version ?? this.#version.followedBy({ mark: to, last: known });
        this.#events += lines.length;
        if (typeof parts.due === "number") this.#leaseEnd = began + parts.due;
      }
      if (outcome && outcome.last > this.#version.last) await this.#receive(outcome.last);
      return outcome;
    } catch (error) {
      this.#isLost = true; // it is unknown what is stored, and nothing more is written: another process continues after the lease
      throw error;
    }
  }

  /** Receives the mail up to entry `last`. */
  async #receive(last: number): Promise<void> {
    const { journal, key, patience, onMail } = this.#options;
    const first = this.#version.last + 1;
    const entries = await withRetries(() => journal.entries(key, first, last), patience);
    if (entries.length < last - first + 1) {
      throw new TypeError(`Cannot read mail: entries ${first} to ${last} are missing`);
    }
    this.#version = this.#version.followedBy({ mark: this.#version.mark, last });
    for (const entry of newMail(entries, this.#mailIds)) onMail?.(entry);
  }
}

/** Returns the mail among entries whose ids are new, and adds those. */
function newMail(entries: readonly NumberedJournalEntry[], ids: Set<string>): readonly MailEntry[] {
  return entries.flatMap(([, entry]) => {
    if (entry.type !== "mail" || ids.has(entry.id)) return [];
    ids.add(entry.id);
    return [entry];
  });
}
