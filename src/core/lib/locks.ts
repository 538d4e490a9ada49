/**
 * Locks: one holder at a time for each key.
 *
 * @module
 */
import { type Cancellation, withGracePeriod } from "./cancellation.ts";
import { SharedWork } from "./shared_work.ts";

/** One lock for each key. Requests for the same key are served in order. The lock of a request that the platform has ended is free after a lease. */
export class Locks {
  readonly #lease: number;
  /** The holder of each lock and those who wait for it, in order. */
  readonly #lines = new Map<string, Set<SharedWork>>();

  /** Creates locks. `lease` is in milliseconds. Default: 30,000. */
  constructor(lease = 30_000) {
    this.#lease = lease;
  }

  /** Returns how many hold the lock of `key` or wait for it. */
  users(key: string): number {
    return [...this.#lines.get(key) ?? []].filter(({ lives }) => lives).length;
  }

  /** Runs `work` while it holds the lock of `key`. Rejects with the reason if `cancellation` aborts before the lock is free. Default: it waits. */
  async hold<T>(key: string, cancellation: Cancellation | undefined, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key) ?? new Set();
    for (const other of line) if (!other.lives) line.delete(other);
    const before = [...line];
    const own = new SharedWork(this.#lease);
    this.#lines.set(key, line.add(own));
    try {
      if (before.length > 0) { // a free lock costs no turn of the microtask queue
        const removeListener = cancellation?.onAbort(() => own.end()); // it counts no longer
        const free = untilAllOver(before);
        await (cancellation ? withGracePeriod(free, cancellation, 0, () => {}) : free);
        removeListener?.();
        if (cancellation?.aborted) throw cancellation.reason;
      }
      return await work();
    } finally {
      own.end();
      line.delete(own);
      if (line.size === 0 && this.#lines.get(key) === line) this.#lines.delete(key);
    }
  }
}

async function untilAllOver(line: readonly SharedWork[]): Promise<void> {
  const lastAlive = () => line.findLast(({ lives }) => lives); // it usually waits for the others itself
  for (let other = lastAlive(); other; other = lastAlive()) await other.untilOver();
}
