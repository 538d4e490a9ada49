/**
 * Reading records.
 *
 * @module
 */
import { UnreadableError } from "../../core/store.ts";
import type { Event } from "../../protocol/event.ts";
import { emittedForm } from "../../protocol/question.ts";
import type { Log, LogPage } from "../log.ts";
import { ownedKey } from "../owned_store.ts";
import type { Owned } from "./run_host.ts";

/** Returns a log that throws an `UnreadableError` for a page that is damaged, so that no client reads it. */
export function readableLog(log: Log): Log {
  return {
    ...(log.deltasEvery !== undefined && { deltasEvery: log.deltasEvery }),
    ...(log.renewIn !== undefined && { renewIn: log.renewIn }),
    records: log.records,
    append: (run, addition) => log.append(run, addition),
    delete: (run) => log.delete(run),
    async read(run, after) {
      const page = await log.read(run, after);
      return page && readablePage(run, page);
    },
    async *tail(run, after, signal) {
      for await (const page of log.tail(run, after, signal)) yield readablePage(run, page);
    },
  };
}

/** Returns a page. Throws if its numbers or its lines are damaged. */
function readablePage(run: string, page: LogPage): LogPage {
  const { first, last, lines } = page;
  try {
    if (Number.isInteger(first) && Number.isInteger(last) && lines.every(isObject)) return page;
  } catch (cause) {
    throw unreadableRecord(run, cause);
  }
  throw unreadableRecord(run);
}

/** Returns true if a line is a JSON object. Throws if it is no JSON. */
function isObject(line: string): boolean {
  const value: unknown = JSON.parse(line);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unreadableRecord(run: string, cause?: unknown): UnreadableError {
  return new UnreadableError(`Cannot read the record of run "${run}": an event is damaged`, {
    subject: "record of the run",
    cause,
  });
}

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
