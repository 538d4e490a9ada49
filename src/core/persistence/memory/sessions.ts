/**
 * Sessions in the memory of this process: heads as JSON, and entries whose messages are copied and frozen once, so that no caller can change what is stored.
 *
 * @module
 */
import { promiseTry } from "../../../stream/tick.ts";
import type { NumberedEntry } from "../entries.ts";
import type { LeasedSession } from "../session.ts";
import { freeze, isSameMark } from "../session_version.ts";
import type { Addition, OpenedSession, RunStore, StoredHead } from "../store.ts";
import { type BoundedCache, boundedCache, type Bounds, boundsOf, type EntryOptions } from "./bounded_cache.ts";
import { writeInMemory } from "./writer.ts";

/** A session in memory. */
interface Stored extends StoredHead {
  /** The entries. The list is shared with later versions, which extend it. */
  readonly list: NumberedEntry[];
  /** The number of characters of the entries, as JSON. */
  readonly length: number;
  readonly options: EntryOptions;
}

/** The sessions of one process. */
export type SessionCache = BoundedCache<Stored>;

/** Creates a bounded cache of sessions. */
export function sessionCache(bounds: Partial<Bounds> = {}): SessionCache {
  return boundedCache(boundsOf(bounds, Infinity));
}

/** Returns the operations of the runs whose sessions are in `sessions`. Default: a cache of their own. */
export function sessionsIn(sessions: SessionCache = sessionCache()): RunStore {
  return {
    writer: writeInMemory,
    head: (id) => Promise.resolve(sessions.get(id)),
    open: (id) => Promise.resolve(openIn(sessions, id)),
    entries: (id, first, last) => Promise.resolve(entriesIn(sessions.get(id)?.list ?? [], first, last)),
    append: (id, addition) => promiseTry(() => appendTo(sessions, id, addition)),
    delete: (id) => Promise.resolve(sessions.remove(id)),
    touch: (session, end) => promiseTry(() => touchIn(sessions, session, end)),
  };
}

function openIn(sessions: SessionCache, id: string): OpenedSession | undefined {
  const stored = sessions.get(id);
  return stored && { ...stored, entries: entriesIn(stored.list, stored.base, stored.last) };
}

/** Returns the entries from `first` to `last`. The first ones may have been deleted. */
function entriesIn(list: readonly NumberedEntry[], first: number, last: number): readonly NumberedEntry[] {
  const [begin = 1] = list[0] ?? [];
  return list.slice(Math.max(first - begin, 0), Math.max(last - begin + 1, 0));
}

/** Saves a session as `StoreAdapter.append()` does. If it does not fit, the entries before its base are deleted, which no run reads. */
export function appendTo(sessions: SessionCache, id: string, addition: Addition): boolean {
  try {
    return append(sessions, id, addition);
  } catch (error) {
    const stored = sessions.get(id);
    const list = entriesIn(stored?.list ?? [], addition.base, addition.first - 1);
    if (!stored || list.length === stored.list.length) throw error;
    const length = list.reduce((sum, [, entry]) => sum + JSON.stringify(entry).length, 0);
    return append(sessions, id, addition, { ...stored, list: [...list], length });
  }
}

function append(
  sessions: SessionCache,
  id: string,
  addition: Addition,
  stored: Stored | undefined = sessions.get(id),
): boolean {
  const { from, to, head, entries, first, base, owner, run } = addition;
  if (isSameMark(stored?.mark, to)) return true;
  if (stored ? !isSameMark(stored.mark, from) : from) return false;
  const { until = stored?.until ?? null } = addition;
  const texts = entries.map((entry) => JSON.stringify(entry));
  const length = texts.reduce((sum, text) => sum + text.length, stored?.length ?? 0);
  const inUse = isBefore(run === "running" ? until ?? Infinity : 0);
  const options = { bytes: 2 * (length + head.length), owner, pinned: run !== undefined, inUse };
  const list = stored?.list ?? [];
  sessions.put(id, { mark: to, base, last: first + entries.length - 1, until, head, list, length, options }, options);
  for (const [index, text] of texts.entries()) list.push([first + index, freeze(JSON.parse(text))]); // only once they are known to fit
  return true;
}

/** Moves the end of a lease as `StoreAdapter.touch()` does. */
export function touchIn(sessions: SessionCache, { id, version, lease }: LeasedSession, until: number): boolean {
  const stored = sessions.get(id);
  if (stored?.mark.n !== version || !lease || stored.until !== Math.trunc(lease.until)) return false;
  const options = { ...stored.options, inUse: isBefore(until) };
  sessions.put(id, { ...stored, until, options }, options);
  return true;
}

/** Returns a function that returns true until a time. It is kept with a session, so it must not keep anything else. */
function isBefore(time: number): () => boolean {
  return () => time > Date.now();
}
