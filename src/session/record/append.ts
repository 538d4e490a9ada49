/**
 * Appending lines to a log, with retries.
 *
 * @module
 */
import { CapacityError } from "../../core/persistence/bounded_cache.ts";
import type { Addition, Log } from "../log.ts";

/** Milliseconds before each retry of a failed append. */
const retryDelays = [50, 250, 1_000];

/** Appends to the log, and retries if the log fails. Returns false if another process has appended to the record. */
export async function append(log: Log, key: string, addition: Addition): Promise<boolean> {
  for (let tries = 0;; tries++) {
    try {
      return await log.append(key, addition) || await endsWith(log, key, addition);
    } catch (error) {
      const delay = retryDelays[tries];
      if (delay === undefined || error instanceof CapacityError) throw error;
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
}

/** Whether the record ends with these lines already: a failed append may have been made, and another process may have added the same end. */
async function endsWith(log: Log, key: string, { after, lines }: Addition): Promise<boolean> {
  const page = await log.read(key, after);
  return page?.last === after + lines.length && lines.every((line, index) => line === page.lines[index]);
}
