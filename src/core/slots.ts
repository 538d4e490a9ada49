/**
 * Slots: how many tools run at the same time, over a run and the agents beneath it.
 *
 * @module
 */
import type { Cancellation } from "./abandon.ts";

/** A bounded number of places, given in the order in which they were asked for. */
export class Semaphore {
  #free: number;
  readonly #waiting: { readonly enter: () => void }[] = [];

  /** Makes `size` places. */
  constructor(size: number) {
    this.#free = size;
  }

  /** Takes a place: at once, or when the promise settles. Rejects with the reason when it is told to stop first. */
  take(at: Cancellation): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      if (at.aborted) return reject(at.reason);
      const entry = {
        enter: () => {
          forget();
          resolve();
        },
      };
      const forget = at.onAbort(() => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(at.reason);
      });
      this.#waiting.push(entry);
    });
  }

  /** Gives a place back. */
  give(): void {
    const next = this.#waiting.shift();
    if (next) next.enter();
    else this.#free++;
  }
}
