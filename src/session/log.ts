/**
 * The log port: the append-only record of the events of runs.
 *
 * @module
 */

/** The append-only record of the events of runs. The events of a run are numbered from 1. Ids are not empty. */
export interface Log {
  /**
   * Adds to the record of a run. Gives false, and adds nothing, where it does not end at `after`: somebody else writes it.
   * A record that is not there, or was forgotten, begins anew after `after`.
   */
  append(run: string, addition: Addition): Promise<boolean>;
  /** What comes after the event of number `after`, or the beginning of it; nothing where there is no such record. */
  read(run: string, after: number): Promise<LogPage | undefined>;
  /**
   * What comes after the event of number `after`: what is there, then what is added, page by page. It ends where the run has ended, where
   * there is no record (any more), and when `signal` aborts.
   */
  tail(run: string, after: number, signal: AbortSignal): AsyncIterable<LogPage>;
  /** Forgets a run. */
  delete(run: string): Promise<void>;
  /** What a server does with it: `records` of this module. It comes with the log, so that no server carries it that has none. */
  readonly records: RecordsOf;
}

/** What a server does with a log. There is one of them, which is `records`. */
export type RecordsOf = (log: Log, host: never) => unknown;

/** What is added to a record. */
export interface Addition {
  /** The number of the event before its first line; 0 at the beginning. */
  readonly after: number;
  /** The events, each as JSON on one line. There may be none, to begin a record or to end it. */
  readonly lines: readonly string[];
  /** Whether the run ends with them. A run that is resumed goes on. */
  readonly ended: boolean;
}

/** Events as they were recorded, without a gap. */
export interface Lines {
  /** The number of the first line: that of the event after `after`, or a later one where events have been forgotten. */
  readonly first: number;
  /** The events, each as JSON on one line. */
  readonly lines: readonly string[];
}

/** Events, and how far their record goes. */
export interface LogPage extends Lines {
  /** The number of the last event of the whole record. Where the lines end before it, there is more to read. */
  readonly last: number;
  /** Whether the run ended with that event, and was not resumed. */
  readonly ended: boolean;
}
