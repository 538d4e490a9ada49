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

/** A place in the line of a lock. */
interface Place {
  readonly work: SharedWork;
  /** The place before it. Those that live no more are skipped, so that a line of any length costs each request the same. */
  before: Place | undefined;
}

/** Returns the last place that lives, of `place` and those before it. */
function lastAlive(place: Place | undefined): Place | undefined {
  let last = place;
  while (last && !last.work.lives) last = last.before;
  return last;
}

/** One lock for each key. Requests for the same key are served in order. The lock of a request that the platform has ended is free after a lease. */
export class Locks {
  readonly #lease: number;
  /** The last place in the line of each lock. The first one holds it. */
  readonly #ends = new Map<string, Place>();

  /** Creates locks. `lease` is in milliseconds. Default: 30,000. */
  constructor(lease = 30_000) {
    this.#lease = lease;
  }

  /** Returns how many hold the lock of `key` or wait for it. Counts no further than `limit`. Default: it counts all. */
  users(key: string, limit = Infinity): number {
    let users = 0;
    let place = lastAlive(this.#ends.get(key));
    for (; place && users < limit; place = lastAlive(place.before)) users++;
    return users;
  }

  /** Runs `work` while it holds the lock of `key`. Rejects with the reason if `cancellation` aborts before the lock is free. Default: it waits. */
  async hold<T>(key: string, cancellation: Cancellation | undefined, work: () => Promise<T>): Promise<T> {
    const lock = this.take(key, cancellation);
    const release = lock instanceof Promise ? await lock : lock; // a free lock costs no turn of the microtask queue
    try {
      return await work();
    } finally {
      release();
    }
  }

  /**
   * Takes the lock of `key`. Returns the function that releases it: at once if the lock is free, else in a promise that rejects with the reason if
   * `cancellation` aborts first.
   */
  take(key: string, cancellation?: Cancellation): (() => void) | Promise<() => void> {
    const place: Place = { before: lastAlive(this.#ends.get(key)), work: new SharedWork(this.#lease) };
    this.#ends.set(key, place);
    const release = () => {
      place.work.end();
      if (this.#ends.get(key) !== place) return;
      const end = lastAlive(place.before);
      if (end) this.#ends.set(key, end);
      else this.#ends.delete(key);
    };
    return place.before
      ? untilFirst(place, cancellation).then(() => release, (reason) => {
        release();
        throw reason;
      })
      : release;
  }
}

/** Resolves when no place before this one lives. Rejects with the reason if `cancellation` aborts first. */
async function untilFirst(place: Place, cancellation: Cancellation | undefined): Promise<void> {
  const removeListener = cancellation?.onAbort(() => place.work.end()); // it counts no longer
  const free = untilFree(place);
  await (cancellation ? withGracePeriod(free, cancellation, 0, () => {}) : free);
  removeListener?.();
  if (cancellation?.aborted) throw cancellation.reason;
}

async function untilFree(place: Place): Promise<void> {
  while ((place.before = lastAlive(place.before))) await place.before.work.untilOver(); // it usually waits for the others itself
}
