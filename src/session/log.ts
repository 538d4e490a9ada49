/**
 * The log port: the append-only record of the events of runs, and the adapter that keeps it in memory.
 *
 * @module
 */
import { bell, follow } from "./follow.ts";
import { recordsOf } from "./record/records.ts";

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
  /** What a server does with it: `records` of this page. It comes with the log, so that no server carries it that has none. */
  readonly records: RecordsOf;
}

/** What a server does with a log. There is one of them, which is `records`. */
export type RecordsOf = (log: Log, host: never) => unknown;

/** What a server does with a log: keeps the record of each run, lets clients follow it, and looks after the runs whose processes have died. */
export const records: RecordsOf = recordsOf;

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

/** How many logs are kept in memory, and for how long. */
export interface MemoryLogOptions {
  /** The most runs; the one that was added to longest ago goes first. Default: 1,000. */
  readonly max?: number;
  /** Milliseconds after its last event that a run is forgotten. Default: 600,000, ten minutes. */
  readonly expireIn?: number;
}

interface Kept {
  /** The number of the event before the first line. */
  readonly before: number;
  readonly lines: string[];
  readonly ended: boolean;
  readonly expires: number;
}

/**
 * Keeps logs in this process, until it ends.
 *
 * ```ts
 * import { memoryLog } from "@jizai/jizai/session/log";
 * import { assertEquals } from "@std/assert";
 *
 * const log = memoryLog();
 * await log.append("r1", { after: 0, lines: [`{"type":"a"}`, `{"type":"b"}`], ended: false });
 * assertEquals(await log.read("r1", 1), { first: 2, lines: [`{"type":"b"}`], last: 2, ended: false });
 * ```
 */
export function memoryLog({ max = 1_000, expireIn = 600_000 }: MemoryLogOptions = {}): Log {
  /** The one that was added to longest ago comes first. */
  const runs = new Map<string, Kept>();
  const added = bell();

  function forget(): void {
    const now = Date.now();
    for (const [run, { expires }] of runs) {
      if (expires > now && runs.size <= max) return;
      runs.delete(run);
    }
  }

  function read(run: string, after: number): Promise<LogPage | undefined> {
    forget();
    const kept = runs.get(run);
    if (!kept) return Promise.resolve(undefined);
    const { before, lines, ended } = kept;
    const first = Math.max(after, before) + 1;
    return Promise.resolve({ first, lines: lines.slice(first - 1 - before), last: before + lines.length, ended });
  }

  return {
    records,
    append(run, { after, lines, ended }) {
      forget();
      const kept: Pick<Kept, "before" | "lines"> = runs.get(run) ?? { before: after, lines: [] };
      if (after !== kept.before + kept.lines.length) return Promise.resolve(false);
      for (const line of lines) kept.lines.push(line);
      runs.delete(run);
      runs.set(run, { ...kept, ended, expires: Date.now() + expireIn });
      forget();
      added.ring(run);
      return Promise.resolve(true);
    },
    read,
    tail: (run, after, signal) => follow(after, signal, (at) => read(run, at), () => added.listen(run, signal)),
    delete(run) {
      runs.delete(run);
      added.ring(run);
      return Promise.resolve();
    },
  };
}
