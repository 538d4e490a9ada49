/**
 * Logs in memory.
 *
 * @module
 */
import { boundedCache, boundNames, boundsOf } from "../core/bounded_cache.ts";
import { expectNames } from "../protocol/shape.ts";
import { followers } from "./followers.ts";
import type { Addition, Log, LogPage } from "./log.ts";
import { pageLength } from "./pieces.ts";
import { isKeyEntry } from "./record/idempotency_keys.ts";
import { records } from "./record/records_of.ts";
import { endOfLines } from "../stream/sse.ts";
import { promiseTry } from "../stream/tick.ts";

/** The bounds of `memoryLog()`. */
export interface MemoryLogOptions {
  /** The number of runs that have ended. Beyond, the one that was added to longest ago is deleted. Default: 1,000. */
  readonly max?: number;
  /**
   * The bytes of all events as JSON, counted as two for each character. Beyond, runs that have ended are deleted, the one that was added to longest ago first.
   * If only runs are left that continue or are paused, `append()` rejects a new run with a `CapacityError`, and one that continues loses its first events.
   * Idempotency keys have as much as a quarter of it, beside the events; beyond, `append()` rejects a new key. Default: 67,108,864.
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
  /** The events. They are added to in place, and never changed otherwise. */
  readonly lines: string[];
  readonly bytes: number;
  readonly ended: boolean;
}

function bytesOf(line: string): number {
  return 2 * line.length;
}

/** Returns a record without its first events, so that it has at most `room` bytes. */
function withoutFirst({ before, lines, bytes, ended }: RunLog, room: number): RunLog {
  let [dropped, left] = [0, bytes];
  while (left > room) left -= bytesOf(lines[dropped++] ?? "");
  return { before: before + dropped, lines: lines.slice(dropped), bytes: left, ended };
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
  const { maxBytes, maxOwnerBytes } = bounds;
  const runs = boundedCache<RunLog>(bounds);
  const keys = boundedCache<RunLog>({ ...bounds, maxBytes: maxBytes / 4, maxOwnerBytes: maxOwnerBytes / 4 });
  const cacheOf = (id: string) => isKeyEntry(id) ? keys : runs;

  const following = followers({ read });

  function read(run: string, after: number): Promise<LogPage | undefined> {
    const stored = cacheOf(run).get(run);
    if (!stored) return Promise.resolve(undefined);
    const { before, lines, ended } = stored;
    const start = Math.max(after - before, 0);
    const page = lines.slice(start, endOfLines(lines, start, pageLength));
    return Promise.resolve({ first: before + start + 1, lines: page, last: before + lines.length, ended });
  }

  function append(run: string, addition: Addition): boolean {
    const { after, lines: added, ended, owner, pinned = !ended, inUse } = addition;
    const cache = cacheOf(run);
    const stored = cache.get(run);
    const { before, lines, bytes }: Omit<RunLog, "ended"> = stored ?? { before: after, lines: [], bytes: 0 };
    if (after !== before + lines.length) return false;
    const size = added.reduce((sum, line) => sum + bytesOf(line), bytes);
    const room = stored ? cache.roomFor(run, owner) : Infinity;
    const options = { owner, pinned, inUse };
    if (size <= room) {
      cache.put(run, { before, lines, bytes: size, ended }, { ...options, bytes: size });
      for (const line of added) lines.push(line); // not before they are known to fit
    } else {
      const rest = withoutFirst({ before, lines: [...lines, ...added], bytes: size, ended }, room);
      cache.put(run, rest, { ...options, bytes: rest.bytes });
    }
    following.add(run, addition);
    return true;
  }

  return {
    records,
    renewIn: bounds.expireIn / 2,
    append: (run, addition) => promiseTry(() => append(run, addition)),
    read,
    tail: following.tail,
    delete(run) {
      cacheOf(run).remove(run);
      following.remove(run);
      return Promise.resolve();
    },
  };
}
