/**
 * The store port: where sessions are kept. The code that only a durable store needs comes with the store, so that an agent without one does not contain it.
 *
 * @module
 */
import { expectedId, isId } from "../../protocol/shape.ts";
import type { OpenRecovery } from "./recovery.ts";
import type { LeasedSession, Session } from "./session.ts";
import type { SessionWriter, WriterOptions } from "./writer.ts";

/**
 * The operations of a database that keeps sessions as JSON. Ids are not empty. Runs wait without a limit: an operation that may hang must fail by itself.
 * Pass an adapter to `durable()` of `@jizai/jizai/session/durable` to make a store of it.
 */
export interface StoreAdapter {
  /** Returns the session, or undefined if there is none. */
  load(id: string): Promise<Session | undefined>;
  /**
   * Saves `session` if the stored version equals `session.version` (0: none is stored), and returns the new version.
   * Returns undefined, and saves nothing, if another process was faster.
   */
  save(session: Session): Promise<number | undefined>;
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
   * The version stays the same. `load()` and `pending()` return the new end. An entry that expires counts as changed.
   */
  touch(session: LeasedSession, until: number): Promise<boolean>;
}

/** A store of sessions. `memory()` and the adapters of `@jizai/jizai/session/*` are stores. */
export interface Store extends StoreAdapter {
  /** Creates the writer of one run's session. */
  readonly writer: OpenWriter;
  /** Creates the recovery of a server's runs. Default: the store ends with the process, and so do its runs. */
  readonly recovery?: OpenRecovery | undefined;
  /** The code with which a server remembers in the store which ends it has to report. Default: the store ends with the process, and so do the reports. */
  readonly reports?: OpenReports | undefined;
}

/** The type of the only value of `reports`, which comes with `durable()`. */
export type OpenReports = (
  store: Pick<StoreAdapter, "load" | "save" | "delete">,
  host: never,
  lease: number,
) => unknown;

/** The operations of a store that a run uses. */
export type RunStore = Pick<Store, "writer" | "load" | "save" | "touch">;

/** The options of `list()`. */
export interface ListOptions {
  /** Returns only ids after this one. Default: all. */
  readonly after?: string;
  /** The number of ids. Default: 100. */
  readonly limit?: number;
}

/** Creates the writer of a run's session in `store`. It reads the run of the engine. */
export type OpenWriter = (store: SessionStore, run: never, options: WriterOptions) => SessionWriter;

/** The operations of a store that a writer uses. */
export type SessionStore = Omit<RunStore, "writer">;

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
