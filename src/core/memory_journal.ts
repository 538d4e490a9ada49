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

/** A journal in memory. The lists are shared with later versions, which extend them. */
interface Stored extends TimelessHead {
  /** The time at which another process must look; null: not at all. */
  readonly dueAt: number | null;
  /** The entries. The first ones may have been deleted. */
  readonly list: NumberedJournalEntry[];
  /** The events, by run. */
  readonly runs: ReadonlyMap<number, RunLines>;
  /** The number of characters of entries and events. */
  readonly length: number;
  /** Milliseconds after the last change, or after the end of the lease, that it is deleted. */
  readonly expireIn: number;
  readonly changedAt: number;
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
  const { watch, notify } = journalWatchers();

  /** Returns a journal that has not expired. The cache deletes one later than that, at a look after it. */
  function find(key: string): Stored | undefined {
    const stored = journals.get(key);
    if (!stored || Date.now() < expiryOf(stored)) return stored;
    remove(key);
    return undefined;
  }

  function remove(key: string): void {
    journals.remove(key);
    dues.delete(key);
  }

  function put(key: string, stored: Stored): void {
    const { owner, length, head, dueAt, state } = stored;
    const inUse = isBefore(expiryOf(stored));
    journals.put(key, stored, { bytes: 2 * (length + head.length), owner, pinned: state !== "over", inUse });
    if (dueAt === null) dues.delete(key);
    else dues.set(key, dueAt);
  }

  function append(key: string, addition: Append): Appended | undefined {
    const stored = find(key);
    const head = headAfter(addition, stored);
    if (!head) return outcomeOf(addition, stored);
    const texts = addition.change?.entries.map((entry) => JSON.stringify(entry)) ?? []; // a copy: the caller may change its own
    const { list, runs, run, last } = fit(
      key,
      nextOf(stored ?? newJournal(addition, head, bounds), head, addition, texts),
    );
    for (const [index, text] of texts.entries()) list.push(numbered(last - texts.length + 1 + index, JSON.parse(text)));
    for (const line of addition.events?.lines ?? []) runs.get(run)?.lines.push(line); // only once they are known to fit
    notify(key);
    return { stored: true, last };
  }

  /** Stores a journal, without what no run reads if there is no room for it. Returns what is stored. */
  function fit(key: string, next: Stored): Stored {
    try {
      put(key, next);
      return next;
    } catch (error) {
      const kept = keptFrom(next, journals.roomFor(key, next.owner) / 2 - next.head.length);
      if (!(error instanceof CapacityError) || kept.length === next.length) throw error;
      put(key, kept);
      return kept;
    }
  }

  function post(key: string, { run, entry, most }: Parameters<Journal["post"]>[1]) {
    const stored = find(key);
    if (!stored || stored.run !== run || stored.state !== "running") return { status: "over" } as const;
    if (most !== undefined && stored.waiting >= most) return { status: "full" } as const;
    const text = JSON.stringify(entry);
    const last = stored.last + 1;
    const waiting = stored.waiting + (most === undefined ? 0 : 1);
    put(key, { ...stored, last, waiting, length: stored.length + text.length, changedAt: Date.now() });
    stored.list.push(numbered(last, JSON.parse(text)));
    notify(key);
    return { status: "posted", last } as const;
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
          const { session, owner: own } = find(key) ?? {};
          return session !== undefined && own === owner && session > after ? [session] : [];
        });
        return all.sort().slice(0, limit);
      }),
    trim: (key, run) =>
      promiseTry(() => {
        const stored = find(key);
        if (!stored) return;
        const kept = new Map([...stored.runs].filter(([number]) => number >= run));
        const length = stored.length - lengthOf(stored.runs) + lengthOf(kept);
        put(key, { ...stored, runs: kept, length });
      }),
    delete: (key) =>
      promiseTry(() => {
        remove(key);
        notify(key);
      }),
  };
}

/** Returns a journal without entries and events. */
function newJournal({ created: { expireIn } = {} }: Append, head: TimelessHead, bounds: Bounds): Stored {
  const none = { dueAt: null, length: 0, changedAt: 0 };
  return { ...head, ...none, expireIn: expireIn ?? bounds.expireIn, list: [], runs: new Map() };
}

/** Returns the version of a journal that an append makes. Its lists do not have the new entries and lines yet. */
function nextOf(stored: Stored, head: TimelessHead, { events, due }: Append, texts: readonly string[]): Stored {
  const { lines = [] } = events ?? {};
  const runs = new Map(stored.runs);
  if (!runs.has(head.run)) runs.set(head.run, { before: head.events - lines.length, lines: [] });
  return {
    ...stored,
    ...head,
    dueAt: due === undefined ? stored.dueAt : due === null ? null : Date.now() + due,
    runs,
    length: [...texts, ...lines].reduce((sum, text) => sum + text.length, stored.length),
    changedAt: Date.now(),
  };
}

/** Returns a journal that is too large without what no run reads: earlier runs, entries before the base, and then its first events. */
function keptFrom(stored: Stored, most: number): Stored {
  const { list, base, last, run, runs } = stored;
  const kept = entriesIn(list, base, last);
  const dropped = list.slice(0, list.length - kept.length);
  const own = runs.get(run);
  const others = lengthOf(runs) - (own ? lengthOf(new Map([[run, own]])) : 0);
  let length = stored.length - others - dropped.reduce((sum, [, entry]) => sum + JSON.stringify(entry).length, 0);
  let { before = 0 } = own ?? {};
  const lines = [...own?.lines ?? []];
  while (length > most && lines.length > 0) {
    length -= lines.shift()?.length ?? 0;
    before++;
  }
  return { ...stored, list: [...kept], runs: new Map([[run, { before, lines }]]), length };
}

function lengthOf(runs: ReadonlyMap<number, RunLines>): number {
  let length = 0;
  for (const { lines } of runs.values()) for (const line of lines) length += line.length;
  return length;
}

function expiryOf({ expireIn, dueAt, changedAt }: Stored): number {
  return Math.max(changedAt, dueAt ?? 0) + expireIn;
}

/** Returns a function that returns true until a time. It is kept with a journal, so it must not keep anything else. */
function isBefore(time: number): () => boolean {
  return () => time > Date.now();
}

function numbered(number: number, entry: JournalEntry): NumberedJournalEntry {
  return freeze([number, entry] as const);
}

function headOf(stored: Stored | undefined): JournalHead | undefined {
  if (!stored) return undefined;
  const { list: _, runs: __, length: ___, expireIn: ____, changedAt: _____, dueAt, ...head } = stored;
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
  if (!stored || run === 0 || (run !== stored.run && !found?.lines.length)) return undefined;
  const { session, owner, state, events } = stored;
  const { before, lines }: RunLines = found ?? { before: events, lines: [] };
  const begin = Math.max(after - before, 0);
  const page: JournalLines = {
    first: Math.max(before + begin, after) + 1,
    lines: lines.slice(begin, endOfLines(lines, begin, pageLength)),
  };
  return { ...page, last: before + lines.length, over: run < stored.run || state !== "running", session, owner };
}
