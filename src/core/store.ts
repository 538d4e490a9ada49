/**
 * The store port: where sessions are kept, how a run writes to it, and how lost runs are recovered. The code that only a durable store needs comes with the
 * store, so that an agent without one does not contain it.
 *
 * @module
 */
import type { Entry, NumberedEntry } from "./entries.ts";
import type { RunResult } from "./points.ts";
import type { Position } from "./position.ts";
import type { LeasedSession, Session, Unsaved } from "./session.ts";
import { brand } from "../protocol/brand.ts";
import type { Event } from "../protocol/event.ts";
import type { Message } from "../protocol/message.ts";
import { expectedId, isId } from "../protocol/shape.ts";

// Errors of stores and logs after which a run does not retry.

/**
 * A failure that lasts longer than a few seconds. If an adapter of yours throws it, a run does not retry the operation.
 *
 * ```ts
 * import { FinalError } from "@jizai/jizai/session/durable";
 *
 * const error = new FinalError("Cannot save the session: it is larger than a value of the database");
 * ```
 */
export class FinalError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "FinalError");

  /** The name of the class. */
  override readonly name: string = "FinalError";
}

/**
 * The error of a stored session, or of the record of a run, that cannot be read: it is damaged, or a newer version of the package has written it. It stays as it
 * is.
 */
export class UnreadableError extends FinalError {
  /** The mark of the class, which its copies share. */
  static override readonly "~brand": symbol = /* @__PURE__ */ brand(this, "UnreadableError");

  /** The name of the class. */
  override readonly name = "UnreadableError";
  /** The name of what cannot be read, for clients. */
  readonly subject: "session" | "record of the run";

  constructor(message: string, { subject = "session", ...options }: UnreadableOptions = {}) {
    super(message, options);
    this.subject = subject;
  }
}

/** Options of an `UnreadableError`. */
interface UnreadableOptions extends ErrorOptions {
  /** The name of what cannot be read. Default: "session". */
  readonly subject?: UnreadableError["subject"];
}

// The port of recovery, which takes over runs whose process died.

/** The options of `recover()`. */
export interface RecoverOptions {
  /** The number of runs to take over, a whole number of at least 1. Default: 10. */
  readonly limit?: number;
}

/** The runs that `recover()` took over. */
export interface Recovered {
  /** Their ids. Of runs that have died before, four continue at a time, and one that has died more often alone: the first ones are here. */
  readonly runs: readonly string[];
  /** Resolves when all of them have ended or paused. Never rejects. */
  readonly over: Promise<void>;
}

/** Takes over runs whose process died. Resolves when they have begun. Rejects if the store fails or `limit` is no whole number of at least 1. */
export type Recover = (options?: RecoverOptions) => Promise<Recovered>;

/** The part of a store that recovery uses. */
export interface LeaseIndex extends SessionReader {
  /** Returns the ids of sessions whose lease has ended. */
  pending(before: number, limit: number): Promise<readonly string[]>;
  /** Moves the end of a lease, for one of several processes. */
  touch(session: LeasedSession, until: number): Promise<boolean>;
  /** Deletes the entry of a pause that was reported. */
  delete(id: string): Promise<void>;
}

/** Creates the recovery of a server from its store. It comes with the store, so that a server without a durable one does not contain it. */
export type OpenRecovery = (store: LeaseIndex, server: never) => Recover;

// Retries for stores and logs that fail now and then.

/** The least number of attempts, and the milliseconds by which each delay grows, up to the longest. */
const attempts = 5;
const backoff = 100;
const longest = 1_000;

/** Milliseconds for which a run that has begun retries: a lock or a restart of the database may take as long. */
export const outage = 10_000;

/** Returns the milliseconds for which a failure is retried. It is asked after each failure, since a run that is stopped or handed over waits no longer. */
export type Patience = () => number;

/** Runs `work` until it succeeds: at least five times, and as long as `patience` returns. Rejects at once with a `FinalError`. */
export async function withRetries<T>(work: (attempt: number) => Promise<T>, patience: Patience = () => 0): Promise<T> {
  const started = Date.now();
  for (let attempt = 0;; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      const isLast = attempt + 1 >= attempts && Date.now() >= started + patience();
      if (isLast || error instanceof FinalError) throw error;
      const delay = Math.min(backoff * (attempt + 1), longest);
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
}

// The port of writers: how a run saves its session.

/** The options of a writer. */
export interface WriterOptions {
  /** True to save the run while it runs. False to save only a pause: the run has no named session. */
  readonly always: boolean;
  /** Milliseconds for which a save claims the session. */
  readonly lease: number;
}

/** Writes the session of one run. One writer has a session at a time. The optional functions belong to stores that outlive the process. */
export interface SessionWriter {
  /** Saves the claim of the session. Resolves to false if another process has it. */
  claim(): Promise<boolean>;
  /**
   * Saves the run at a position. Aborts the run if another process has the session. A checkpoint that is not urgent may wait, and is left out if another
   * save follows. Returns no promise if nothing is to be saved.
   */
  checkpoint(position: Position, urgent: boolean): Promise<void> | undefined;
  /** Saves the run at once, if it is saved while it runs. */
  saveNow?(): Promise<void> | undefined;
  /** Saves the run as it is now: later changes are not saved until that is done. Returns no promise if nothing is to be saved. */
  saveFrozen?(): Promise<void> | undefined;
  /** Saves the session for the last time: with the paused run, or with the run's last event. Resolves to false if another process has it. */
  end(last: Event | undefined): Promise<boolean>;
  /** Prepares a run whose process died or shut down, before its hooks begin. Resolves to its result if it ends or is left before. */
  takeOver?(): Promise<RunResult | undefined>;
  /** Gives the run to another process, at the next safe place or after `grace` milliseconds. */
  handOver?(grace: number): void;
  /** Stops renewing the claim. */
  close?(): void;
}

/** Returns the session that a save at the end of a run stores: without the run, and with its last event. */
export function endedSession({ run, ...session }: Unsaved, event: Event): Unsaved {
  return run ? { ...session, last: { run: run.id, event, before: run.before } } : session;
}

// The port of stores: what a database does for sessions.

/** Identifies a save: the writer makes it before it saves, so that it can repeat a save whose acknowledgement was lost. */
export interface Mark {
  /** A random text. Each writer that does not have the session takes a new one. */
  readonly holder: string;
  /** The number of the save, which is the version of the session. */
  readonly n: number;
}

/** A session as a store keeps it, without its entries. */
export interface StoredHead {
  /** The mark of the last save. */
  readonly mark: Mark;
  /** The number of the entry from which on the entries are read. */
  readonly base: number;
  /** The number of the last entry; 0: there is none. */
  readonly last: number;
  /** The end of the lease, in milliseconds since 1970; null without a lease. */
  readonly until: number | null;
  /** The session without its messages, as JSON, as `append()` received it. */
  readonly head: string;
}

/** A session as a store keeps it. */
export interface OpenedSession extends StoredHead {
  /** The entries from `base` on. */
  readonly entries: readonly NumberedEntry[];
}

/** A save. */
export interface Addition {
  /** The mark that is stored; undefined if no session is stored. */
  readonly from: Mark | undefined;
  /** The mark to store. */
  readonly to: Mark;
  /** The head to store. */
  readonly head: string;
  /** The entries to append. */
  readonly entries: readonly Entry[];
  /** The number of the first of them: that after the last entry. */
  readonly first: number;
  /** The number of the entry from which on the entries are read after the save. */
  readonly base: number;
  /** The end of the lease to store, a whole number of milliseconds since 1970; null for no lease. Default: the stored one stays. */
  readonly until?: number | null;
  /** The owner of the session, for stores that are bounded for each owner. */
  readonly owner: string | undefined;
  /** Whether a run has the session, which a bounded store must keep then: a paused one, or one that is running. */
  readonly run: "paused" | "running" | undefined;
}

/**
 * The operations of a database that keeps sessions. A session is a head, which is replaced as a whole, and a list of numbered entries, which are appended and never
 * change. Ids are not empty. Pass an adapter to `durable()` of `@jizai/jizai/session/durable` to make a store of it.
 */
export interface StoreAdapter {
  /** Returns the head of a session, or undefined if there is none. */
  head(id: string): Promise<StoredHead | undefined>;
  /** Returns the head of a session and its entries from `base` on, as one save left them, or undefined if there is none. */
  open(id: string): Promise<OpenedSession | undefined>;
  /** Returns the entries from number `first` to number `last` that are stored. */
  entries(id: string, first: number, last: number): Promise<readonly NumberedEntry[]>;
  /**
   * Stores a head, appends entries, and changes the lease, all of it or nothing, if the stored mark is `from`. Returns true then, and also if the stored mark is
   * already `to`: a save that is repeated. Returns false, and changes nothing, otherwise.
   */
  append(id: string, addition: Addition): Promise<boolean>;
  /** Deletes the session. */
  delete(id: string): Promise<void>;
  /** Returns ids of sessions in a stable order in which ids that begin with U+10FFFF come last, such as that of their UTF-8 bytes. */
  list(options?: ListOptions): Promise<readonly string[]>;
  /**
   * Returns the ids of at most `limit` sessions whose lease ended at `before` or earlier, the earliest first. An index must find them: most sessions have no
   * lease.
   */
  pending(before: number, limit: number): Promise<readonly string[]>;
  /**
   * Moves the end of a lease to `until`, a whole number, if the stored session has the version and the lease of `session`. Returns false, and changes nothing, otherwise.
   * The mark stays the same. An entry that expires counts as changed.
   */
  touch(session: LeasedSession, until: number): Promise<boolean>;
}

/** A store of sessions. `memory()` and the adapters of `@jizai/jizai/session/*` are stores. */
export interface Store extends StoreAdapter, Sessions {
  /** Creates the writer of one run's session. */
  readonly writer: OpenWriter;
  /** Creates the recovery of a server's runs. Default: the store ends with the process, and so do its runs. */
  readonly recovery?: OpenRecovery | undefined;
  /** The code with which a server remembers in the store which ends it has to report. Default: the store ends with the process, and so do the reports. */
  readonly reports?: OpenReports | undefined;
}

/** The type of the only value of `reports`, which comes with `durable()`. */
export type OpenReports = (
  store: StoreAdapter,
  host: never,
  lease: number,
) => unknown;

/** Whole sessions in a store, for tools and tests. Runs append what is new. */
export interface Sessions {
  /** Returns the session, whose messages cannot be changed, or undefined if there is none. Its version is the number of its saves. */
  load(id: string): Promise<Session | undefined>;
  /**
   * Saves `session` if the stored version equals `session.version` (0: none is stored), and returns the new version.
   * Returns undefined, and saves nothing, if another process was faster.
   */
  save(session: Session): Promise<number | undefined>;
  /**
   * Returns the last messages of a session's history, in their order, or those before an earlier page. The history is the transcript, and the messages that
   * compactions have removed from it. Returns undefined if there is no such session.
   */
  history(id: string, options?: HistoryOptions): Promise<HistoryPage | undefined>;
  /**
   * Creates the session `to` with the transcript that session `id` has, or had after an entry. Returns false if there is no such session or entry, or if there is a
   * session `to`.
   */
  fork(id: string, to: string, options?: ForkOptions): Promise<boolean>;
}

/** The options of `history()`. */
export interface HistoryOptions {
  /** The `before` of the page that follows. Default: the end of the history. */
  readonly before?: number | undefined;
  /** The number of messages. Default: 100. */
  readonly limit?: number | undefined;
}

/** A part of a session's history. */
export interface HistoryPage {
  /** The messages, in their order. */
  readonly messages: readonly Message[];
  /** The numbers of the entries that contain the messages. */
  readonly numbers: readonly number[];
  /** The number of the first of them, to read the page before; undefined if no message is before them. */
  readonly before: number | undefined;
}

/** The options of `fork()`. */
export interface ForkOptions {
  /** The number of the last entry that counts, such as one of `HistoryPage.numbers`. Default: the last entry. */
  readonly at?: number | undefined;
}

/** The operations of a store that a run uses. */
export type RunStore = SessionStore & Pick<Store, "writer">;

/** The options of `list()`. */
export interface ListOptions {
  /** Returns only ids after this one. Default: all. */
  readonly after?: string;
  /** The number of ids. Default: 100. */
  readonly limit?: number;
}

/** Creates the writer of a run's session in `store`. It reads the run of the engine. */
export type OpenWriter = (store: SessionStore, run: never, options: WriterOptions) => SessionWriter;

/** The operations of a store that read sessions. */
export type SessionReader = Pick<StoreAdapter, "head" | "open" | "entries">;

/** The operations of a store that a writer uses. */
export type SessionStore = SessionReader & Pick<StoreAdapter, "append" | "delete" | "touch">;

/** The first character of the ids of entries that are no conversations. Such ids come after all others, and `list()` of a store leaves them out. */
export const hidden = "\u{10ffff}";

/** Returns true for the id of a conversation. */
export function isListed(id: string): boolean {
  return !id.startsWith(hidden);
}

/** The maximum length of an id, with its owner: Deno KV takes keys of 2 KiB, and a character has up to three bytes. */
const longestId = 500;

/**
 * Returns the expected value in place of an id that no session, run or owner can have; undefined for any other id. An id is refused if it is empty, if it is
 * that of an entry that a server keeps for itself, or if databases would change it or have no room for it. `key` is the id with its owner.
 */
export function expectedInPlaceOf(id: string, key = id): string | undefined {
  if (id === "" || !isListed(key)) return "the id of a session or run";
  if (!isId(id)) return expectedId;
  return key.length > longestId ? `${longestId} characters at most` : undefined;
}
