/**
 * Logs in memory.
 *
 * @module
 */
import { ttlCache } from "../core/shelf.ts";
import { follow, notifier } from "./notifier.ts";
import type { Log, LogPage } from "./log.ts";
import { records } from "./record/records.ts";

/** How many logs are kept in memory, and for how long. */
export interface MemoryLogOptions {
  /** The most runs beside those that go on; the one that was added to longest ago goes first. Default: 1,000. */
  readonly max?: number;
  /** Milliseconds after its last event that a run is forgotten. Default: 600,000, ten minutes. */
  readonly expireIn?: number;
}

interface Kept {
  /** The number of the event before the first line. */
  readonly before: number;
  readonly lines: string[];
  readonly ended: boolean;
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
  const runs = ttlCache<Kept>({ max, expireIn });
  const additions = notifier();

  function read(run: string, after: number): Promise<LogPage | undefined> {
    const kept = runs.get(run);
    if (!kept) return Promise.resolve(undefined);
    const { before, lines, ended } = kept;
    const first = Math.max(after, before) + 1;
    return Promise.resolve({ first, lines: lines.slice(first - 1 - before), last: before + lines.length, ended });
  }

  return {
    records,
    append(run, { after, lines, ended }) {
      const kept: Pick<Kept, "before" | "lines"> = runs.get(run) ?? { before: after, lines: [] };
      if (after !== kept.before + kept.lines.length) return Promise.resolve(false);
      for (const line of lines) kept.lines.push(line);
      runs.put(run, { ...kept, ended }, !ended);
      additions.notify(run);
      return Promise.resolve(true);
    },
    read,
    tail: (run, after, signal) => follow(after, signal, (at) => read(run, at), () => additions.subscribe(run, signal)),
    delete(run) {
      runs.remove(run);
      additions.notify(run);
      return Promise.resolve();
    },
  };
}
