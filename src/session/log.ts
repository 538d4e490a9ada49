/**
 * The log port.
 *
 * @module
 */

/** The append-only record of the events of runs. The events of a run are numbered from 1. Ids are not empty. */
export interface Log {
  /**
   * Appends to the record of a run. Returns false, and appends nothing, if the record does not end at `after`: another process writes it. A record that does
   * not exist, or was deleted, begins after `after`.
   */
  append(run: string, addition: Addition): Promise<boolean>;
  /** Returns the events after event `after`, or the first page of them; nothing if there is no such record. */
  read(run: string, after: number): Promise<LogPage | undefined>;
  /**
   * Yields the events after event `after`, and those that are appended later, page by page. Ends when the run has ended, when the record does not exist or was deleted,
   * and when `signal` aborts.
   */
  tail(run: string, after: number, signal: AbortSignal): AsyncIterable<LogPage>;
  /** Deletes the record of a run. */
  delete(run: string): Promise<void>;
  /**
   * Milliseconds for which deltas wait for those that follow, so that one addition stores them together. The first delta after a pause does not wait, and no other
   * event does. Default: 0.
   */
  readonly deltasEvery?: number;
  /** Milliseconds without an event after which the process of a run appends nothing, so that the record does not expire. Default: never. */
  readonly renewIn?: number;
  /** The code that a server needs for a log: `records` of this module. It comes with the log, so that a server without one does not contain it. */
  readonly records: RecordsOf;
}

/** The type of `records`, which is its only value. */
export type RecordsOf = (log: Log, host: never) => unknown;

/** An option of the logs that a database keeps. */
export interface DeltaOptions {
  /**
   * Milliseconds for which deltas wait for those that follow, so that one addition stores them together; live clients receive them in the same steps. The first
   * delta after a pause does not wait, and no other event does. Default: 100.
   */
  readonly deltasEvery?: number;
}

/** The default of `deltasEvery`. */
export const deltasEveryDefault = 100;

/** An addition to a record. */
export interface Addition {
  /** The number of the event before its first line; 0 at the beginning. */
  readonly after: number;
  /** The events, each as JSON on one line. No line begins, renews or ends a record. */
  readonly lines: readonly string[];
  /** Whether the run ends or pauses with them. A run that is resumed continues the record. */
  readonly ended: boolean;
  /** The owner of the run, for logs that are bounded for each owner. */
  readonly owner?: string | undefined;
  /** Whether a bounded log must keep the record until it expires: the run continues or is paused. Default: the run has not ended. */
  readonly pinned?: boolean;
  /** Whether the process that appends may append more, for logs in its memory: they keep the record as long, whatever the clock does. Default: false. */
  readonly inUse?: () => boolean;
}

/** Logged events, without a gap. */
export interface Lines {
  /** The number of the first line: the event after `after`, or a later one if events have been deleted. */
  readonly first: number;
  /** The events, each as JSON on one line. */
  readonly lines: readonly string[];
}

/** Logged events, and the end of their record. */
export interface LogPage extends Lines {
  /** The number of the last event of the whole record. If the lines end before it, there are more pages. */
  readonly last: number;
  /** Whether the run ended or paused with that event, and was not resumed. */
  readonly ended: boolean;
}
