/**
 * Logs in memory.
 *
 * @module
 */
import { boundedCache, boundNames, boundsOf } from "../core/persistence/memory/bounded_cache.ts";
import { expectNames } from "../protocol/option_names.ts";
import { follow, notifier } from "./notifier.ts";
import type { Log, LogPage } from "./log.ts";
import { records } from "./record/records_of.ts";
import { promiseTry } from "../stream/promise_try.ts";

/** The bounds of `memoryLog()`. */
export interface MemoryLogOptions {
  /** The number of runs that have ended. Beyond, the one that was added to longest ago is deleted. Default: 1,000. */
  readonly max?: number;
  /**
   * The bytes of all events as JSON, counted as two for each character. Beyond, runs that have ended are deleted, the one that was added to longest ago first.
   * If only records that must stay are left, `append()` rejects with a `CapacityError`. Default: 67,108,864.
   */
  readonly maxBytes?: number;
  /** The same for the runs of one owner. Default: a quarter of `maxBytes`. */
  readonly maxOwnerBytes?: number;
  /** Milliseconds after its last event that a run is deleted, unless it continues. Default: 600,000, ten minutes. */
  readonly expireIn?: number;
}

interface RunLog {
  /** The number of the event before the first line. */
  readonly before: number;
  readonly lines: string[];
  readonly bytes: number;
  readonly ended: boolean;
}

/**
 * Keeps logs in the memory of this process.
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
export function memoryLog(options: MemoryLogOptions = {}): Log {
  expectNames("Cannot create memoryLog()", options, boundNames);
  const bounds = boundsOf(options, 600_000);
  const runs = boundedCache<RunLog>(bounds);
  const additions = notifier();

  function read(run: string, after: number): Promise<LogPage | undefined> {
    const stored = runs.get(run);
    if (!stored) return Promise.resolve(undefined);
    const { before, lines, ended } = stored;
    const first = Math.max(after, before) + 1;
    return Promise.resolve({ first, lines: lines.slice(first - 1 - before), last: before + lines.length, ended });
  }

  return {
    records,
    renewIn: bounds.expireIn / 2,
    append: (run, { after, lines, ended, owner, pinned = !ended, inUse }) =>
      promiseTry(() => {
        const stored: Omit<RunLog, "ended"> = runs.get(run) ?? { before: after, lines: [], bytes: 0 };
        if (after !== stored.before + stored.lines.length) return false;
        const bytes = 2 * lines.reduce((sum, line) => sum + line.length, 0) + stored.bytes;
        runs.put(run, { ...stored, bytes, ended }, { bytes, owner, pinned, inUse });
        for (const line of lines) stored.lines.push(line); // not before they are known to fit
        additions.notify(run);
        return true;
      }),
    read,
    tail: (run, after, signal) => follow(after, signal, (at) => read(run, at), () => additions.subscribe(run, signal)),
    delete(run) {
      runs.remove(run);
      additions.notify(run);
      return Promise.resolve();
    },
  };
}
