/**
 * Locks: one holder at a time for each key.
 *
 * @module
 */
import type { Cancellation } from "./cancellation.ts";
import { Semaphore } from "./semaphore.ts";

/** The lock of one key: its semaphore, and the number of holders and waiters. */
interface Lock {
  readonly semaphore: Semaphore;
  users: number;
}

/** One lock for each key. Requests for the same key are served in order. */
export class Locks {
  readonly #locks = new Map<string, Lock>();

  /** Runs `work` while it holds the lock of `key`. Rejects with the reason if `cancellation` aborts before the lock is free. */
  async hold<T>(key: string, cancellation: Cancellation, work: () => Promise<T>): Promise<T> {
    const lock = this.#locks.get(key) ?? { semaphore: new Semaphore(1), users: 0 };
    this.#locks.set(key, lock);
    lock.users++;
    try {
      const slot = lock.semaphore.take(cancellation);
      if (slot) await slot; // a free lock costs no turn of the microtask queue
      try {
        return await work();
      } finally {
        lock.semaphore.give();
      }
    } finally {
      if (--lock.users === 0) this.#locks.delete(key);
    }
  }
}
