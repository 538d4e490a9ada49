/**
 * Appending lines to a log, with retries.
 *
 * @module
 */
import { type Patience, withRetries } from "../../core/store.ts";
import type { Addition, Log } from "../log.ts";

/**
 * Appends to the log, and retries as long as `patience` returns if the log fails. Returns false if another process has appended to the record.
 */
export function append(log: Log, key: string, addition: Addition, patience?: Patience): Promise<boolean> {
  const work = async () => await log.append(key, addition) || await endsWith(log, key, addition);
  return withRetries(work, patience);
}

/** Whether the record ends with these lines already: a failed append may have been made, and another process may have added the same end. */
async function endsWith(log: Log, key: string, { after, lines }: Addition): Promise<boolean> {
  const page = await log.read(key, after); // of many lines, the first tell whose addition it is
  return page?.first === after + 1 && page.last === after + lines.length &&
    page.lines.every((line, index) => line === lines[index]);
}
