/**
 * A queue of typed lines.
 *
 * @module
 */

/** Lines in the order in which they were typed, until they are read. */
export class LineQueue {
  readonly #lines: string[] = [];
  #closed = false;
  #waiting: ((line: string | undefined) => void) | undefined;

  /** Whether a reader waits for a line. */
  get waits(): boolean {
    return this.#waiting !== undefined;
  }

  /** Adds a line. */
  add(line: string): void {
    if (this.waits) this.#answer(line);
    else this.#lines.push(line);
  }

  /** Returns the next line, or `undefined` once the queue is closed and empty, or when the signal aborts. */
  next(signal?: AbortSignal): Promise<string | undefined> {
    if (signal?.aborted) return Promise.resolve(undefined);
    if (this.#lines.length > 0 || this.#closed) return Promise.resolve(this.#lines.shift());
    return new Promise((resolve) => {
      const stopWaiting = () => this.#answer(undefined);
      signal?.addEventListener("abort", stopWaiting, { once: true });
      this.#waiting = (line) => {
        signal?.removeEventListener("abort", stopWaiting);
        resolve(line);
      };
    });
  }

  #answer(line: string | undefined): void {
    const resolve = this.#waiting;
    this.#waiting = undefined;
    resolve?.(line);
  }

  /** Ends the queue. */
  close(): void {
    this.#closed = true;
    this.#answer(undefined);
  }
}
