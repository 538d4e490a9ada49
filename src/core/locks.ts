/**
 * Locks: one at a time for each key.
 *
 * @module
 */
import type { Cancellation } from "./abandon.ts";
import { Semaphore } from "./slots.ts";

/** Those who share a key: who works, and who waits for it. */
interface Line {
  readonly place: Semaphore;
  length: number;
}

/** Lets one at a time work for each key, in the order in which they come. */
export class Locks {
  readonly #lines = new Map<string, Line>();

  /** Does `work` when those have done theirs that came before it with the same key. Rejects with the reason when it is told to stop first. */
  async hold<T>(key: string, at: Cancellation, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key) ?? { place: new Semaphore(1), length: 0 };
    this.#lines.set(key, line);
    line.length++;
    try {
      const wait = line.place.take(at);
      if (wait) await wait;
      try {
        return await work();
      } finally {
        line.place.give();
      }
    } finally {
      if (--line.length === 0) this.#lines.delete(key);
    }
  }
}
