/**
 * Locks: semaphores, work that several requests share, and one holder at a time for each key.
 *
 * @module
 */
import { type Cancellation, startTimer, withGracePeriod } from "./cancellation.ts";

// A semaphore: a bounded number of slots, granted in the order of the requests.

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

// Work of one request that other requests wait for.

/** The part of a lease after which it is renewed. */
const interval = 1 / 10;

/** Work in the request that creates it. Every request may call its functions: the promises that they return belong to their caller. */
export class SharedWork {
  readonly #lease: number;
  #renewedAt = 0;
  #renewal: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;
  /** Functions that resolve the promises of those that wait for the end. */
  #waiting: Set<() => void> | undefined;
  /** Jobs of other requests, and the promise that ends the wait for them. */
  #jobs: (() => void)[] = [];
  #called = Promise.withResolvers<void>();

  /** Begins the work. Once its timer has not fired for `lease` milliseconds, it is dead, and so is every lease of this length that it renewed. */
  constructor(lease: number) {
    this.#lease = lease;
    this.#renew();
    this.#doJobs(); // it never rejects
  }

  /** False once the work has ended, or is dead. */
  get lives(): boolean {
    return !this.#isOver && this.#leaseLeft > 0;
  }

  /** The work may have renewed other leases until its next renewal. The clock is that of timers, which a change of the time of day does not move. */
  get #leaseLeft(): number {
    return this.#renewedAt + this.#lease * (1 + interval) - performance.now();
  }

  #renew(): void {
    this.#renewedAt = performance.now();
    this.#renewal = startTimer(() => this.#renew(), this.#lease * interval);
  }

  /** Ends the work. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#renewal);
    this.#called.resolve();
    for (const resolve of this.#waiting ?? []) resolve();
  }

  /** Resolves when the work has ended, or is dead. */
  untilOver(): Promise<void> {
    return this.#orOver(Promise.withResolvers<void>());
  }

  /** Does a job in the request of this work, and returns its outcome; undefined if the work ends or is dead before. */
  dispatch<T>(job: () => Promise<T>): Promise<T | undefined> {
    const outcome = Promise.withResolvers<T | undefined>();
    this.#jobs.push(() => void job().then(outcome.resolve, outcome.reject));
    this.#called.resolve();
    return this.#orOver(outcome);
  }

  async #doJobs(): Promise<void> {
    while (!this.#isOver) {
      await this.#called.promise;
      this.#called = Promise.withResolvers();
      for (const job of this.#jobs.splice(0)) job();
    }
  }

  /** Returns an outcome, or undefined if the work ends or is dead before. */
  async #orOver<T>({ promise, resolve }: PromiseWithResolvers<T | undefined>): Promise<T | undefined> {
    const giveUp = () => resolve(undefined);
    const waiting = this.#waiting ??= new Set();
    waiting.add(giveUp);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const check = () => {
      if (this.lives) timer = startTimer(check, this.#leaseLeft);
      else giveUp();
    };
    check();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      waiting.delete(giveUp);
    }
  }
}

// Locks: one holder at a time for each key.

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
