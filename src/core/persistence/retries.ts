/**
 * Retries for stores and logs that fail now and then.
 *
 * @module
 */
import { FinalError } from "./final_error.ts";

/** The least number of attempts, and the milliseconds by which each delay grows, up to the longest. */
const attempts = 5;
const backoff = 100;
const longest = 1_000;

/** Milliseconds for which a run that has begun retries: a lock or a restart of the database may take as long. */
export const outage = 10_000;

/** Returns the milliseconds for which a failure is retried. It is asked after each failure, since a run that is stopped or handed over waits no longer. */
export type Patience = () => number;

/** Runs `work` until it succeeds: at least five times, and as long as `patience` returns. Rejects at once with a `FinalError`. */
export async function withRetries<T>(work: (attempt: number) => Promise<T>, patience: Patience = () => 0): Promise<T> {
  const started = Date.now();
  for (let attempt = 0;; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      const isLast = attempt + 1 >= attempts && Date.now() >= started + patience();
      if (isLast || error instanceof FinalError) throw error;
      const delay = Math.min(backoff * (attempt + 1), longest);
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
}
