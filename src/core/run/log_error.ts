/**
 * The default receiver of errors. No other file of `src` writes to the console.
 *
 * @module
 */
import type { OnError } from "./events.ts";

/** Writes an error to the console, with the id that clients see in its place. */
export function logError(error: unknown, { id, run }: LoggedInfo): void {
  console.error(run === undefined ? `Error ${id}:` : `Error ${id} in run ${run}:`, error);
}

/** The id of an error, and its run, if one had begun. */
type LoggedInfo = Pick<Parameters<OnError>[1], "id"> & Partial<Parameters<OnError>[1]>;
