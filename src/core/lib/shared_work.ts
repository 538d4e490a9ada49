/**
 * Work of one request that other requests wait for.
 *
 * On Cloudflare Workers, the timers and the promises of a request end with it: a promise of a request that has ended never settles, and a request that awaits
 * it fails. So each request awaits promises of its own only, and work whose own timer has not fired for a lease is dead.
 *
 * @module
 */
import { startTimer } from "./cancellation.ts";

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
