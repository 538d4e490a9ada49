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
   * Runs `work`, unless work for the same key is in progress: then waits for its outcome. If that work failed or has no outcome to share, one of those that
   * wait tries again for all. If this fails too, all run `work`, in parallel. A caller whose signal aborts stops waiting, and its own work stops by its own
   * signal.
   */
  async run(key: string, signal: AbortSignal, work: () => Promise<T>, isShared: (outcome: T) => boolean): Promise<T> {
    for (let waits = 0; waits < 2; waits++) {
      const flight = this.#flights.get(key);
      if (!flight) return await this.#lead(key, signal, work, isShared);
      const outcome = await withGracePeriod(flight, cancellationOf(signal), 0, () => {});
      if (outcome !== undefined) return outcome;
    }
    return await work();
  }

  /** Runs `work` for all who wait for the key, until its signal aborts: work that ignores the signal may never end. */
  async #lead(key: string, signal: AbortSignal, work: () => Promise<T>, isShared: (outcome: T) => boolean): Promise<T> {
    const working = work();
    const flight = withGracePeriod(working, cancellationOf(signal), 0, () => {})
      .then((outcome) => isShared(outcome) ? outcome : undefined, () => undefined)
      .finally(() => this.#flights.delete(key));
    this.#flights.set(key, flight);
    return await working;
  }
}
