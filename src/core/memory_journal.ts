/**
 * Journals in the memory of a process: frozen entries by reference, and lines.
 *
 * @module
 */
import { boundedCache, type Bounds, boundsOf, CapacityError } from "./bounded_cache.ts";
import {
  type Append,
  type Appended,
  headAfter,
  type Journal,
  type JournalEntry,
  type JournalHead,
  type JournalLines,
  journalWatchers,
  type NumberedJournalEntry,
  outcomeOf,
  type TimelessHead,
} from "./journal.ts";
import { freeze } from "./session_version.ts";
import { endOfLines } from "../stream/sse.ts";
import { promiseTry } from "../stream/tick.ts";

/** The number of characters of a page of events. A page ends with the first event that exceeds it. */
const pageLength = 500_000;

/** The events of one run. Lines are added in place, and never changed otherwise. */
interface RunLines {
  /** The number of the event before the first line. */
  readonly before: number;
  readonly lines: string[];
}

/** A journal in memory. */
interface Stored {
  head: TimelessHead;
  /** The time at which another process must look; null: not at all. */
  dueAt: number | null;
  /** The time at which the last run was over; null: it is not over, or its events have been swept. */
  endedAt: number | null;
  /** The entries. The first ones may have been deleted. */
  list: NumberedJournalEntry[];
  /** The events, by run. */
  runs: Map<number, RunLines>;
  /** The number of characters of entries and events. */
  length: number;
  changedAt: number;
  /** The steady clock at the last change. */
  steadyAt: number;
  /** Milliseconds after the last change, or after the end of the lease, that it is deleted. */
  readonly expireIn: number;
}

/** The bounds of journals in memory. Those of one owner that are over make room for others, the one that was changed longest ago first. */
export type MemoryJournalOptions = Partial<Bounds>;

/**
 * Creates journals in the memory of this process. If one does not fit, its earliest events and the entries before its base are deleted, which no run reads;
 * `append()` rejects with a `CapacityError` if that is not enough.
 */
export function memoryJournal(options: MemoryJournalOptions = {}): Journal {
  const bounds = boundsOf(options, Infinity);
  const journals = boundedCache<Stored>(bounds);
  const dues = new Map<string, number>();
  const { watch, notify, has: isWatched } = journalWatchers();

  /** Returns a journal that has not expired. The cache deletes one later than that, at a look after it. */
  function find(key: string): Stored | undefined {
    const stored = journals.get(key);
    if (!stored || isKept(key, stored)) return stored;
    remove(key);
    return undefined;
  }

  /** Whether a journal has not expired. A clock that steps does not count while a run is in progress, whose process watches the journal. */
  function isKept(key: string, stored: Stored): boolean {
    const { head: { state }, changedAt, steadyAt } = stored;
    const isLive = state === "running" && isWatched(key);
    return (isLive ? changedAt + performance.now() - steadyAt : Date.now()) < expiryOf(stored);
  }

  function remove(key: string): void {
    journals.remove(key);
    dues.delete(key);
  }

  /** Makes room for a journal that is to have this head and `more` further characters. It loses what no run reads if there is no room otherwise. */
  function makeRoom(key: string, stored: Stored, head: TimelessHead, more: number): void {
    const put = () => {
      const bytes = 2 * (stored.length + more + head.head.length);
      const inUse = () => isKept(key, stored);
      journals.put(key, stored, { bytes, owner: roomOf(head), pinned: head.state !== "over" || isHidden(head), inUse });
    };
    try {
      put();
    } catch (error) {
      const kept = keptFrom(stored, head, journals.roomFor(key, roomOf(head)) / 2 - head.head.length - more);
      if (!(error instanceof CapacityError) || kept.length === stored.length) throw error;
      const before = { ...stored };
      try {
        Object.assign(stored, kept);
        put();
      } catch (error) {
        Object.assign(stored, before);
        throw error;
      }
    }
  }

  function setDue(key: string, stored: Stored, dueAt: number | null): void {
    stored.dueAt = dueAt;
    if (dueAt === null) dues.delete(key);
    else dues.set(key, dueAt);
  }

  function append(key: string, addition: Append): Appended | undefined {
    const found = find(key);
    const head = headAfter(addition, found?.head);
    if (!head) return outcomeOf(addition, found?.head);
    const texts = addition.change?.entries.map((entry) => JSON.stringify(entry)) ?? []; // a copy: the caller may change its own
    const { events, due, created: { expireIn = bounds.expireIn } = {} } = addition;
    const lines = events?.lines ?? [];
    const stored: Stored = found ??
      { head, dueAt: null, endedAt: null, list: [], runs: new Map(), length: 0, changedAt: 0, steadyAt: 0, expireIn };
    const more = lengthOf(texts) + lengthOf(lines);
    makeRoom(key, stored, head, more);
    stored.head = head;
    stored.length += more;
    noteChange(stored);
    if (addition.change) stored.endedAt = head.state === "over" && head.run > 0 ? Date.now() : null;
    if (due !== undefined) setDue(key, stored, due === null ? null : Date.now() + due);
    const first = head.last - texts.length + 1;
    for (const [index, text] of texts.entries()) stored.list.push(numbered(first + index, JSON.parse(text)));
    const own = stored.runs.get(head.run);
    if (own?.lines.length) { for (const line of lines) own.lines.push(line); }
    else stored.runs.set(head.run, { before: head.events - lines.length, lines: [...lines] });
    notify(key, false);
    return { stored: true, last: head.last };
  }

  function post(key: string, { run, entry, most }: Parameters<Journal["post"]>[1]) {
    const stored = find(key);
    if (!stored || stored.head.run !== run || stored.head.state !== "running") return { status: "over" } as const;
    if (most !== undefined && stored.head.waiting >= most) return { status: "full" } as const;
    const text = JSON.stringify(entry);
    const last = stored.head.last + 1;
    const head = { ...stored.head, last, waiting: stored.head.waiting + (most === undefined ? 0 : 1) };
    makeRoom(key, stored, head, text.length);
    stored.head = head;
    stored.length += text.length;
    noteChange(stored);
    stored.list.push(numbered(last, JSON.parse(text)));
    notify(key, true);
    return { status: "posted", last } as const;
  }

  /** Deletes the events of runs before `run`. */
  function trim(key: string, stored: Stored | undefined, run: number): void {
    if (!stored) return;
    for (const [number, { lines }] of stored.runs) {
      if (number >= run) continue;
      stored.runs.delete(number);
      stored.length -= lengthOf(lines);
    }
    makeRoom(key, stored, stored.head, 0);
  }

  return {
    watch,
    head: (key) => promiseTry(() => headOf(find(key))),
    open: (key) =>
      promiseTry(() => {
        const stored = find(key);
        const head = headOf(stored);
        return stored && head && { ...head, entries: entriesIn(stored.list, head.base, head.last) };
      }),
    entries: (key, first, last) => promiseTry(() => entriesIn(find(key)?.list ?? [], first, last)),
    append: (key, addition) => promiseTry(() => append(key, addition)),
    post: (key, addition) => promiseTry(() => post(key, addition)),
    read: (key, run, after) => promiseTry(() => pageOf(find(key), run, after)),
    pending: (limit, within = 0) =>
      promiseTry(() => {
        for (const key of [...dues.keys()]) if (!find(key)) dues.delete(key);
        const before = Date.now() + within;
        const due = [...dues].filter(([, at]) => at <= before).sort(([, a], [, b]) => a - b);
        return due.slice(0, limit).map(([key]) => key);
      }),
    list: ({ owner, after = "", limit = 100 } = {}) =>
      promiseTry(() => {
        const all = journals.ids().flatMap((key) => {
          const { session, owner: own } = find(key)?.head ?? {};
          return session !== undefined && own === owner && session > after ? [session] : [];
        });
        return all.sort().slice(0, limit);
      }),
    trim: (key, run) => promiseTry(() => trim(key, find(key), run)),
    sweep: (limit, keep) =>
      promiseTry(() => {
        let count = 0;
        for (const key of journals.ids()) {
          if (count >= limit) break;
          const stored = journals.get(key);
          if (!stored) continue;
          if (!isKept(key, stored)) {
            remove(key);
          } else {
            if (stored.endedAt === null || stored.endedAt > Date.now() - keep) continue;
            trim(key, stored, stored.head.run + 1);
            stored.endedAt = null;
          }
          count++;
        }
        return count;
      }),
    delete: (...keys) =>
      promiseTry(() => {
        for (const key of keys) {
          remove(key);
          notify(key);
        }
      }),
  };
}

/** Returns what is kept of a journal that is too large: neither earlier runs nor entries before the base, and as many of its last events as `most` characters allow. */
function keptFrom(
  stored: Stored,
  { base, last, run }: TimelessHead,
  most: number,
): Pick<Stored, "list" | "runs" | "length"> {
  const list = [...entriesIn(stored.list, base, last)];
  const dropped = stored.list.slice(0, stored.list.length - list.length);
  const { before = 0, lines = [] } = stored.runs.get(run) ?? {};
  const others = [...stored.runs].reduce((sum, [number, { lines }]) => number === run ? sum : sum + lengthOf(lines), 0);
  let length = stored.length - others - dropped.reduce((sum, [, entry]) => sum + JSON.stringify(entry).length, 0);
  let skipped = 0;
  for (; length > most && skipped < lines.length; skipped++) length -= lines[skipped]?.length ?? 0;
  const runs = new Map(stored.runs.has(run) ? [[run, { before: before + skipped, lines: lines.slice(skipped) }]] : []);
  return { list, runs, length };
}

/** Returns true for a journal that is not listed, such as an idempotency key. It stays until it is deleted or expires: a request that is repeated would run twice. */
function isHidden({ session }: TimelessHead): boolean {
  return session === undefined;
}

/** Returns the name of the room of a journal. The hidden journals of an owner have their own, so that they take none from sessions. */
function roomOf(head: TimelessHead): string | undefined {
  return isHidden(head) ? `\0${head.owner ?? ""}` : head.owner;
}

function lengthOf(texts: readonly string[]): number {
  let length = 0;
  for (const text of texts) length += text.length;
  return length;
}

function expiryOf({ expireIn, dueAt, changedAt }: Stored): number {
  return Math.max(changedAt, dueAt ?? 0) + expireIn;
}

function noteChange(stored: Stored): void {
  stored.changedAt = Date.now();
  stored.steadyAt = performance.now();
}

function numbered(number: number, entry: JournalEntry): NumberedJournalEntry {
  return freeze([number, entry] as const);
}

function headOf(stored: Stored | undefined): JournalHead | undefined {
  if (!stored) return undefined;
  const { head, dueAt } = stored;
  return { ...head, mark: { ...head.mark }, due: dueAt === null ? null : dueAt - Date.now() };
}

/** Returns the entries from `first` to `last`. The first ones may have been deleted. */
function entriesIn(
  list: readonly NumberedJournalEntry[],
  first: number,
  last: number,
): readonly NumberedJournalEntry[] {
  const [begin = 1] = list[0] ?? [];
  return list.slice(Math.max(first - begin, 0), Math.max(last - begin + 1, 0));
}

function pageOf(stored: Stored | undefined, run: number, after: number) {
  const found = stored?.runs.get(run);
  if (!stored || run === 0 || (run !== stored.head.run && !found?.lines.length)) return undefined;
  const { session, owner, state, events, run: lastRun } = stored.head;
  const { before, lines }: RunLines = found ?? { before: events, lines: [] };
  const begin = Math.max(after - before, 0);
  const page: JournalLines = {
    first: Math.max(before + begin, after) + 1,
    lines: lines.slice(begin, endOfLines(lines, begin, pageLength)),
  };
  return { ...page, last: before + lines.length, over: run < lastRun || state !== "running", session, owner };
}
