/**
 * A semaphore: a bounded number of slots, granted in the order of the requests.
 *
 * @module
 */
import type { Cancellation } from "./cancellation.ts";

/** A bounded number of slots. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  /** Creates a semaphore with `size` free slots. */
  constructor(size: number) {
    this.#free = size;
  }

  /** Takes a slot. Returns nothing if one is free, else a promise that rejects with the reason if `cancellation` aborts first. */
  take(cancellation: Cancellation): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      if (cancellation.aborted) return reject(cancellation.reason);
      const enter = () => {
        removeListener();
        resolve();
      };
      const removeListener = cancellation.onAbort(() => {
        this.#waiting.delete(enter);
        reject(cancellation.reason);
      });
      this.#waiting.add(enter);
    });
  }

  /** Returns a slot. The longest waiting request gets it. */
  give(): void {
    const [next] = this.#waiting;
    if (!next) this.#free++;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
