/**
 * A session in its journal: how it is opened, claimed and written, above the port and below the engine.
 *
 * @module
 */
import {
  type Append,
  type Appended,
  isSameMark,
  type Journal,
  type JournalEntry,
  type JournalLines,
  type MailEntry,
  type Mark,
  type NumberedJournalEntry,
} from "./journal.ts";
import type { Unsaved } from "./session.ts";
import { type OpenedSession, openSession, SessionVersion } from "./session_version.ts";
import { type Patience, StoreDeadlineError, withRetries } from "./store.ts";
import type { Event } from "../protocol/event.ts";
import { lineOf } from "../stream/sse.ts";

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
  /** Receives a claim that fails and may be stored all the same. Default: its run counts as lost then. */
  readonly onFailedClaim?: ((claim: FailedClaim) => void) | undefined;
}

/** A claim that has failed, and may be stored all the same: its call has reached its deadline, or its acknowledgements were lost. */
export interface FailedClaim {
  readonly key: string;
  readonly decision: JournalClaim;
  /** The session before the claim; undefined for a new one. */
  readonly opened: OpenedSession | undefined;
  readonly append: Append;
  /** The session after the claim. */
  readonly next: OpenedSession;
  /** The error with which it has failed. */
  readonly error: unknown;
}

/** A decision to take a session: the session to store, with the run that has it from now on. */
export interface JournalClaim {
  readonly session: Unsaved;
  /** True if a new run begins. False if the session's last run continues. */
  readonly begins: boolean;
  /** The number of the last entry whose mail the session contains. Default: a run that continues has taken none since its process died, and a new run all. */
  readonly readUntil?: number | undefined;
  /** The idempotency id of the request. */
  readonly request?: string | undefined;
  /** The first events, each as JSON on one line. Default: none. */
  readonly lines?: readonly string[];
  /** The properties of the session, if it is new. */
  readonly owner?: string | undefined;
}

/**
 * Claims a session as it was opened, and returns its writer; undefined if another process was faster. `opened` is undefined for a new session. Mail that has arrived
 * since is received before that.
 */
export async function claimOpened(
  options: JournalWriterOptions,
  opened: OpenedSession | undefined,
  decision: JournalClaim,
): Promise<JournalWriter | undefined> {
  const { journal, key, lease, patience, onMail, onFailedClaim } = options;
  const holder = crypto.randomUUID();
  for (let known = opened;;) {
    const before = known;
    const { append, next } = claimOf(before, holder, lease, decision);
    const failed = (error: unknown) => {
      onFailedClaim?.({ key, decision, opened: before, append, next, error });
      throw error;
    };
    const outcome = await withRetries(() => journal.append(key, append), patience)
      .catch(async (error) => await storedIn(journal, key, append.to, error) ?? failed(error));
    if (outcome?.stored && outcome.last === next.head.last) return new JournalWriter(options, next);
    const found = outcome && await withRetries(() => openSession(journal, key), patience).catch(failed);
    if (!found || !isSameMark(found.head.mark, outcome.stored ? append.to : known?.head.mark)) return undefined;
    for (const entry of found.mail) if (!known?.mailIds.has(entry.id)) onMail?.(entry);
    if (outcome.stored) return new JournalWriter(options, found);
    known = found;
  }
}

/** Returns the outcome of an append whose acknowledgements were lost, if it was stored. After a deadline it returns undefined: the client has waited for one already. */
async function storedIn(journal: Journal, key: string, mark: Mark, error: unknown): Promise<Appended | undefined> {
  if (error instanceof StoreDeadlineError) return undefined;
  const head = await journal.head(key).catch(() => undefined);
  return isSameMark(mark, head?.mark) && head ? { stored: true, last: head.last } : undefined;
}

/** Returns the append of a claim, and the session once it is stored. */
function claimOf(
  opened: OpenedSession | undefined,
  holder: string,
  lease: number,
  { session, begins, readUntil: received, request, lines = [], owner }: JournalClaim,
): { readonly append: Append; readonly next: OpenedSession } {
  const { run = 0, events: before = session.run?.events ?? 0, last = 0, waiting = 0 } = opened?.head ?? {};
  const number = begins || !opened ? run + 1 : run;
  const after = begins && opened ? 0 : Math.max(before, session.run?.events ?? 0); // the events of a run without a record are counted, too
  const begun = { type: "begun", run: number, after, ...(request !== undefined && { request }) } as const;
  const mail = begins ? [] : opened?.mail ?? []; // a new prompt has taken the messages of the run before it
  const readUntil = received ?? (begins ? last : opened?.session.readUntil ?? 0);
  const { from, to, change, version } = (opened?.version ?? SessionVersion.none).next(session, {
    holder,
    run: number,
    waiting: begins ? 0 : waiting,
    readUntil,
    more: [begun],
  });
  const created = { session: session.id, owner: owner ?? session.owner };
  const events: JournalLines = { first: after + 1, lines };
  const due = change.state === "running" ? lease : null;
  const append: Append = { from, to, change, due, events, ...(!opened && { created }) };
  const owned = created.owner ?? opened?.head.owner;
  const head = {
    ...change,
    session: session.id,
    owner: owned,
    mark: to,
    events: after + lines.length,
    due,
    last: version.last,
  };
  const next = {
    head,
    session: { ...session, version: to.n, readUntil },
    version,
    mail,
    mailIds: opened?.mailIds ?? new Set<string>(),
    requests: new Map(),
    ends: [],
  };
  return { append, next };
}

// Writing.

/** The least milliseconds between two looks for mail in a journal that does not notify. */
const shortestLook = 1_000;

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
  /** The number of the last entry whose mail the session contains. Default: `last` of the writer. */
  readonly readUntil?: number;
  /** True if another process continues the run at once. Default: after the lease. */
  readonly released?: boolean;
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
  /** The append whose outcome is unknown, since the database has failed, and what it makes. */
  #unknown: { readonly to: Mark; readonly confirm: () => void } | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  /** Writes the session that was claimed. */
  constructor(options: JournalWriterOptions, { head, version, mailIds }: OpenedSession) {
    this.#options = options;
    this.#holder = head.mark.holder;
    this.#version = version.followedBy({ mark: head.mark, last: head.last });
    this.#run = head.run;
    this.#events = head.events;
    this.#mailIds = new Set(mailIds);
    this.#leaseEnd = Date.now() + (head.due ?? 0);
  }

  /** The number of the run. */
  get run(): number {
    return this.#run;
  }

  /** The number of the run's last event that is stored. */
  get events(): number {
    return this.#events;
  }

  /** The number of the last entry that is known: mail up to it was received. */
  get last(): number {
    return this.#version.last;
  }

  /** The time of this process at which the stored lease ends, in milliseconds since 1970. */
  get leaseEnd(): number {
    return this.#leaseEnd;
  }

  /** True once another process has the session. */
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
        if (this.#unknown) await this.#settle();
        const { session, lines = [], ended, waiting = 0, readUntil = this.last, released } = read();
        const all = ended ? [...lines, lineOf(ended)] : lines;
        const at = Date.now();
        const more: readonly JournalEntry[] = ended ? [{ type: "ended", run: this.#run, ...endOf(ended), at }] : [];
        const parts = { holder: this.#holder, run: this.#run, waiting, readUntil, more };
        const { change, version } = this.#version.next(session, parts);
        const due = change.state !== "running" ? { due: null } : released ? { due: 0 } : this.#renewal();
        const outcome = await this.#append({ change, ...due }, all, version);
        if (outcome?.stored === false) continue;
        this.#isOver ||= ended !== undefined && outcome !== undefined;
        return outcome !== undefined;
      }
    });
  }

  /** Stores the events that `read` returns, which show no progress, such as deltas, and renews the lease if that is due. */
  emit(read: () => readonly string[]): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#unknown) await this.#settle();
      return await this.#append(this.#renewal(), read()) !== undefined;
    });
  }

  /**
   * Looks for mail soon after each post, once at a time, if `isWanted` returns true; `onLoss` is called if another process has the session. A failure is left to the
   * next write. Returns the function that ends the watch.
   */
  watch(isWanted: () => boolean, onLoss: () => void): () => void {
    const { journal, key } = this.#options;
    let isLooking = false;
    let lookedAt = 0;

    const look = async (): Promise<void> => { // never rejects
      if (isLooking || !isWanted()) return;
      isLooking = true;
      lookedAt = performance.now();
      const isOurs = await this.#look().catch(() => true).finally(() => isLooking = false);
      if (!isOurs) onLoss();
    };

    const notify = (isPost = performance.now() > lookedAt + shortestLook) => void (isPost && look());
    const end = journal.watch(key, { notify, fail() {} }); // without notifications, the next write tells of mail
    const timer = journal.pollEvery === undefined
      ? undefined
      : setInterval(look, Math.max(journal.pollEvery, shortestLook));
    return () => {
      end();
      clearInterval(timer);
    };
  }

  /** Receives the mail that has arrived, without a write. Resolves to false if the session was lost. */
  #look(): Promise<boolean> {
    const { journal, key } = this.#options;
    return this.#inTurn(async () => {
      const head = await journal.head(key);
      if (!this.#unknown) this.#isLost = !isSameMark(head?.mark, this.#version.mark);
      if (head && !this.#isLost && head.last > this.last) await this.#receive(head.last);
      return !this.#isLost;
    });
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
    const done = this.#turn.then(() => this.#isLost || this.#isOver ? !this.#isLost : work());
    this.#turn = done.catch(() => {}); // the caller handles the failure
    return done;
  }

  /** Returns the lease to store: once a third of it has passed, since an index contains it. */
  #renewal(): { readonly due?: number } {
    const { lease } = this.#options;
    return this.#leaseEnd - Date.now() <= lease * 2 / 3 ? { due: lease } : {};
  }

  /** Finds out whether the append was stored whose outcome is unknown. */
  async #settle(): Promise<void> {
    const { journal, key, patience } = this.#options;
    const unknown = this.#unknown;
    if (!unknown) return;
    const head = await withRetries(() => journal.head(key), patience);
    this.#unknown = undefined;
    if (isSameMark(unknown.to, head?.mark)) unknown.confirm();
    else this.#isLost = !isSameMark(this.#version.mark, head?.mark);
  }

  /** Appends until the outcome is known, and receives the mail that has arrived. Returns undefined if the session was lost. */
  async #append(
    parts: Pick<Append, "change" | "due">,
    lines: readonly string[],
    next?: SessionVersion,
  ): Promise<Appended | undefined> {
    const { journal, key, patience } = this.#options;
    if (this.#unknown) await this.#settle();
    if (this.#isLost) return undefined;
    const { mark: from, last, n } = this.#version;
    const to = { holder: this.#holder, n: n + 1 };
    const events = lines.length > 0 && { events: { first: this.#events + 1, lines } };
    const began = Date.now();
    const confirm = () => {
      this.#version = next ?? this.#version.followedBy({ mark: to, last });
      this.#events += lines.length;
      if (typeof parts.due === "number") this.#leaseEnd = began + parts.due;
    };
    try {
      const outcome = await withRetries(() => journal.append(key, { from, to, ...parts, ...events }), patience);
      if (!outcome) this.#isLost = true;
      if (outcome?.stored) confirm();
      if (outcome && outcome.last > this.last) await this.#receive(outcome.last);
      return outcome;
    } catch (error) {
      if (!isSameMark(to, this.#version.mark)) this.#unknown = { to, confirm };
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

/** Returns what the entry of an end tells about the last event, which is stored as a line. */
function endOf(event: Event) {
  const as = event.type === "run.finished" ? event.status : event.type.slice("run.".length);
  return { as, ...("reason" in event && event.reason !== undefined && { reason: event.reason }) };
}
