/**
 * Single flight: work for one key runs once at a time, and every caller receives its outcome.
 *
 * @module
 */
import { cancellationOf, withGracePeriod } from "../../../src/core/kit.ts";

/** Work in progress, by key. */
export class Flights<T> {
  readonly #flights = new Map<string, Promise<T | undefined>>();

  /**
   * Runs `work`, unless work for the same key is in progress: then waits for its outcome. If that work failed or has no outcome to share, runs `work` too. A
   * caller whose signal aborts stops waiting, and its own work stops by its own signal.
   */
  async run(key: string, signal: AbortSignal, work: () => Promise<T>, isShared: (outcome: T) => boolean): Promise<T> {
    for (let flight = this.#flights.get(key); flight; flight = this.#flights.get(key)) {
      const outcome = await withGracePeriod(flight, cancellationOf(signal), 0, () => {});
      if (outcome !== undefined) return outcome;
    }
    const flight = Promise.withResolvers<T | undefined>();
    this.#flights.set(key, flight.promise);
    let shared: T | undefined;
    try {
      const outcome = await work();
      if (isShared(outcome)) shared = outcome;
      return outcome;
    } finally {
      this.#flights.delete(key);
      flight.resolve(shared);
    }
  }
}
