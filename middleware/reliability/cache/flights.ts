/**
 * Single flight: work for one key runs once at a time, and every caller receives its outcome.
 *
 * @module
 */
import { cancellationOf, SharedWork, withGracePeriod } from "../../../src/core/kit.ts";

/** Milliseconds after which work does not count whose request the platform has ended. */
const lease = 30_000;

/** Work in progress, and its outcome if it has one to share. */
interface Flight<T> {
  readonly work: SharedWork;
  outcome: T | undefined;
}

/** Work in progress, by key. */
export class Flights<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /**
   * Runs `work`, unless work for the same key is in progress: then waits for its outcome. If that work failed or has no outcome to share, one of those that
   * wait tries again for all. If this fails too, all run `work`, in parallel. A caller whose signal aborts stops waiting, and its own work stops by its own
   * signal.
   */
  async run(key: string, signal: AbortSignal, work: () => Promise<T>, isShared: (outcome: T) => boolean): Promise<T> {
    for (let waits = 0; waits < 2; waits++) {
      const flight = this.#flights.get(key);
      if (!flight?.work.lives) return await this.#lead(key, signal, work, isShared);
      await withGracePeriod(flight.work.untilOver(), cancellationOf(signal), 0, () => {});
      if (flight.outcome !== undefined) return flight.outcome;
    }
    return await work();
  }

  /** Runs `work` for all who wait for the key, until its signal aborts: work that ignores the signal may never end. */
  async #lead(key: string, signal: AbortSignal, work: () => Promise<T>, isShared: (outcome: T) => boolean): Promise<T> {
    const flight: Flight<T> = { work: new SharedWork(lease), outcome: undefined };
    this.#flights.set(key, flight);
    const working = work();
    withGracePeriod(working, cancellationOf(signal), 0, () => {})
      .then((outcome) => flight.outcome = isShared(outcome) ? outcome : undefined, () => {}) // the caller receives the failure
      .finally(() => {
        flight.work.end();
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
      });
    return await working;
  }
}
