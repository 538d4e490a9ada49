/**
 * The store port: where sessions are kept, how a run writes to it, and how lost runs are recovered. The code that only a durable store needs comes with the
 * store, so that an agent without one does not contain it.
 *
 * @module
 */
import type { Journal, JournalListOptions } from "./journal.ts";
import type { RunResult } from "./points.ts";
import type { Session, Unsaved } from "./session.ts";
import { brand } from "../protocol/brand.ts";
import type { Message } from "../protocol/message.ts";
import { expectedId, isId } from "../protocol/shape.ts";

// Errors of stores after which a run does not retry.

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

// The calls of a store, as a server observes them.

/** An operation of a store. A watch is none: it has no end. A sweep is none either: it is long work, for which no request waits. */
export type StoreOperation = Exclude<keyof Journal, "watch" | "sweep" | "pollEvery" | "deltasEvery"> | "move";

/** A fact about the store of a server. Times are in milliseconds. */
export type StoreFact =
  /** A call has ended, failed, or reached its deadline. A call that is retried is one fact for each attempt. */
  | {
    readonly type: "store.called";
    readonly operation: StoreOperation;
    readonly milliseconds: number;
    readonly outcome: "ok" | "failed" | "deadline";
  }
  /** A call that has failed or reached its deadline is about to be repeated. */
  | { readonly type: "store.retried"; readonly operation: StoreOperation }
  /** For a second, no call has succeeded after one that failed, or a call has not ended. `operation` is that of the call. */
  | { readonly type: "store.slow"; readonly operation: StoreOperation; readonly milliseconds: number }
  /** The calls of a slow store succeed again, after this time. `operation` is that of `store.slow`. */
  | { readonly type: "store.recovered"; readonly operation: StoreOperation; readonly milliseconds: number };

/** The error of a call that has not ended within the deadline of the server. Its effect is unknown, as that of a call whose acknowledgement was lost. */
export class StoreDeadlineError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "StoreDeadlineError");

  /** The name of the class. */
  override readonly name = "StoreDeadlineError";

  /** `late` settles with the call, if that ends at all. */
  constructor(message: string, readonly late: Promise<unknown>) {
    super(message);
  }
}

// Recovery, which takes over runs whose process died.

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

// Sweeps, which delete what is not kept any more.

/** The options of `sweep()`. */
export interface SweepOptions {
  /** The number of sessions and keys of one step, a whole number of at least 1: a write that comes meanwhile waits for one step at most. Default: 100. */
  readonly limit?: number;
}

/** Deletes what is not kept any more. Resolves to the number of sessions and keys of which it has deleted something. */
export type Sweep = (options?: SweepOptions) => Promise<number>;

// Retries for stores that fail now and then.

/** The least number of attempts, and the milliseconds by which each delay grows, up to the longest. */
const attempts = 5;
const backoff = 100;
const longest = 1_000;

/** Milliseconds after which there need not be as many attempts: as long as they take if each fails at once. Some drivers try for long themselves. */
const slow = 1_000;

/** Milliseconds for which a run that has begun retries: a lock or a restart of the database may take as long. It is less than a lease. */
export const outage = 20_000;

/** Returns the milliseconds for which a failure is retried. It is asked after each failure, since a run that is stopped or handed over waits no longer. */
export type Patience = () => number;

/** The functions that are called before the work that has thrown an error is repeated. A bounded store sets those of the errors of its calls. */
export const retryObservers: WeakMap<Error, () => void> = /* @__PURE__ */ new WeakMap();

/** Runs `work` until it succeeds: at least five times, for a second or until a deadline, and as long as `patience` returns. Rejects at once with a `FinalError`. */
export async function withRetries<T>(work: (attempt: number) => Promise<T>, patience: Patience = () => 0): Promise<T> {
  const started = Date.now();
  for (let attempt = 0;; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      const passed = Date.now() - started;
      const isTriedEnough = attempt + 1 >= attempts || passed >= slow || error instanceof StoreDeadlineError;
      const isLast = isTriedEnough && passed >= patience();
      if (isLast || error instanceof FinalError) throw error;
      if (error instanceof Error) retryObservers.get(error)?.();
      const delay = Math.min(backoff * (attempt + 1), longest);
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
}

// Stores: sessions in a journal.

/** A store of sessions. `memory()` and those of `@jizai/jizai/session/*` are stores. */
export interface Store extends Sessions {
  /** The journals of the sessions. */
  readonly journal: Journal;
  /** The code that a store needs which outlives the process, from `durable()`. Default: the store ends with the process, and so do its runs. */
  readonly durable?: DurableRuns;
  /** The sessions of earlier versions of the package, which have no journals yet. Default: there are none. */
  readonly earlier?: EarlierSessions;
}

/** The store as a run uses it. */
export interface RunStore extends Pick<Store, "journal" | "durable" | "earlier"> {
  /** Keeps the ends of runs whose sessions are not saved, so that their sessions can be continued. Default: they are dropped. */
  readonly unsaved?: UnsavedSessions;
  /** Undoes claims that have failed and are stored all the same. Default: their runs count as lost. */
  readonly withdrawals?: ClaimWithdrawals;
}

/** The sessions that are stored once they are continued: most never are. */
export interface UnsavedSessions {
  /** Keeps the session of a run that has ended. Throws if there is no room for it. */
  keep(session: Unsaved): void;
  /** Stores a session that was kept, before it is read. */
  store(id: string): Promise<void>;
}

/** The sessions that versions of the package before journals have stored, in rows of their own. */
export interface EarlierSessions {
  /** Stores such a session in a journal, and deletes its row. Resolves to false if it has no journal now, and true if it may have one: another process may have been faster. */
  move(id: string, name?: SessionName): Promise<boolean>;
  /** Deletes the row of a session. */
  delete(id: string, name?: SessionName): Promise<void>;
}

/** The store of a server, whose calls end within a deadline. */
export interface BoundedStore extends Pick<Store, "journal" | "durable" | "earlier"> {
  /** True for the error of a call that may succeed later. */
  isFailure(error: unknown): boolean;
  /** Undoes claims that have failed and are stored all the same. */
  readonly withdrawals: ClaimWithdrawals;
}

/** Undoes claims that have failed and are stored all the same, so that their sessions are free, and nothing of their requests has begun. */
export interface ClaimWithdrawals {
  /** Undoes a claim of the engine: at once, or as soon as the store works. */
  readonly add: (claim: never) => void;
  /** Resolves when the failed claims of a journal are undone; undefined if there are none. Never rejects. */
  undone(key: string): Promise<void> | undefined;
}

/** The bounds of the calls of a store, and the receivers of their facts and reports. */
export interface BoundOptions {
  /** Milliseconds after which a call ends. */
  readonly deadline: number;
  /** Receives each fact. */
  readonly observe: ((fact: StoreFact) => void) | undefined;
  /** Reports to the operator that the store is slow, and that it works again. */
  readonly report: (error: Error) => void;
}

/** The code for runs that outlive their process: how they are given to another one, taken over, recovered on a server, and reported. */
export interface DurableRuns {
  /** Bounds the calls of a store. */
  readonly bound: (store: Pick<Store, "journal" | "durable" | "earlier">, options: BoundOptions) => BoundedStore;
  /** Prepares a run whose process died or shut down, before its hooks begin. Resolves to its result if it ends or is left before. */
  readonly takeOver: (run: never) => Promise<RunResult | undefined>;
  /** Gives a run to another process, at the next safe place or after `grace` milliseconds. */
  readonly handOver: (run: never, release: Release, grace: number) => void;
  /** Creates the recovery of a server from its store. */
  readonly recovery: (store: Pick<Store, "journal">, server: never) => Recover;
  /** Creates the entries with which a server remembers which ends it has to report. */
  readonly reports: (store: Pick<Store, "journal">, host: never, lease: number) => unknown;
}

/** Saves a session for another process to continue its run, and ends the lease. */
export type Release = (session: Unsaved) => Promise<unknown>;

/** The name of a session beside its id. */
export interface SessionName {
  /** The owner of the session. Two owners may use the same id. Default: the session has no owner. */
  readonly owner?: string | undefined;
}

/** Whole sessions in a store, for tools and tests. Runs append what is new. */
export interface Sessions {
  /** Returns the session, whose messages cannot be changed, or undefined if there is none. Its version is the number of its saves. */
  load(id: string, name?: SessionName): Promise<Session | undefined>;
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
  /** Returns the ids of the sessions of an owner, or of those without an owner, in a stable order. */
  list(options?: ListOptions): Promise<readonly string[]>;
  /** Deletes a session, its events, and the idempotency keys and owed reports of its runs. A process that has the session can store nothing more. */
  delete(id: string, name?: SessionName): Promise<void>;
}

/** The options of `history()`. */
export interface HistoryOptions extends SessionName {
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
export interface ForkOptions extends SessionName {
  /** The number of the last entry that counts, such as one of `HistoryPage.numbers`. Default: the last entry. */
  readonly at?: number | undefined;
}

/** The options of `list()`. */
export type ListOptions = JournalListOptions;

/** The maximum length of an id, with its owner: Deno KV takes keys of 2 KiB, and a character has up to three bytes. */
const longestId = 500;

/**
 * Returns the expected value in place of an id that no session, run or owner can have; undefined for any other id. An id is refused if it is empty, or if
 * databases would change it or have no room for it. `key` is the id with its owner, as logs name it.
 */
export function expectedInPlaceOf(id: string, key = id): string | undefined {
  if (id === "") return "the id of a session or run";
  if (!isId(id)) return expectedId;
  return key.length > longestId ? `${longestId} characters at most` : undefined;
}
