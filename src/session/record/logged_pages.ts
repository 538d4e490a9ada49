/**
 * Reading records.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { emittedForm } from "../../protocol/shared_schemas.ts";
import type { Log, LogPage } from "../log.ts";
import { ownedKey } from "../owned_store.ts";
import type { Owned } from "./run_host.ts";

/** Returns the key of a run's record in the log. */
export function recordKey(run: string, { owner }: Owned): string {
  return ownedKey(owner, run);
}

/** Reads the end of a record: a page without lines. */
export async function readEnd(log: Log, key: string): Promise<LogPage | undefined> {
  return await log.read(key, Number.MAX_SAFE_INTEGER);
}

/** Returns the last event of a record whose run has ended or paused; undefined if there is none. `end` is the end of the record. */
export async function lastEvent(log: Log, key: string, end: LogPage | undefined): Promise<Event | undefined> {
  const page = end?.ended ? await log.read(key, end.last - 1) : undefined;
  const line = page?.lines.at(-1);
  return line === undefined ? undefined : emittedForm(JSON.parse(line));
}

/** Yields the events after event `after` that are logged now, page by page; nothing if there is no such record. */
export async function* loggedPages(log: Log, key: string, after: number): AsyncGenerator<LogPage> {
  for (let at = after;;) {
    const page = await log.read(key, at);
    if (!page) return;
    yield page;
    const { first, lines, last } = page;
    at = first + lines.length - 1;
    if (lines.length === 0 || at >= last) return;
  }
}
