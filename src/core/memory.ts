/**
 * Sessions in memory: the store, its writer, and the memory of an agent without a store.
 *
 * @module
 */
import {
  type BoundedCache,
  boundedCache,
  boundNames,
  type Bounds,
  boundsOf,
  CapacityError,
  type EntryOptions,
} from "./bounded_cache.ts";
import type { NumberedEntry } from "./entries.ts";
import { startTimer } from "./lib/cancellation.ts";
import { type Position, stops } from "./position.ts";
import type { EngineRun } from "./run.ts";
import { type Lease, type LeasedSession, leavesNothing, savedSession, type Unsaved } from "./session.ts";
import { changeHead, freeze, isSameMark, openHead, sessionsOf, SessionVersion } from "./session_version.ts";
import {
  type Addition,
  endedSession,
  isListed,
  type OpenedSession,
  type OpenWriter,
  type RunStore,
  type SessionStore,
  type SessionWriter,
  type Store,
  type StoredHead,
  type WriterOptions,
} from "./store.ts";
import type { Event } from "../protocol/event.ts";
import { expectNames } from "../protocol/shape.ts";
import { promiseTry } from "../stream/tick.ts";

// The writer of a store that ends with the process, as its runs do.

/**
 * Opens a writer for a store that ends with the process. No process can find the run after a crash, so it saves only the claim, each turn, and the end. It
 * has a lease, because the request that executes the run may end before the process does, as on Cloudflare Workers.
 */
const writeInMemory: OpenWriter = (store, run: EngineRun, options) => new MemoryWriter(store, run, options);

/** The options of a writer in memory. */
interface MemoryWriterOptions extends WriterOptions {
  /** Keeps the end of a run that is not saved. Throws if there is no room for it. Default: it is dropped. */
  readonly keep?: (session: Unsaved) => void;
}

/** A writer. A class, because a server keeps one for each stream, and a closure for each operation would take five times the memory. */
class MemoryWriter implements SessionWriter {
  readonly #store: SessionStore;
  readonly #run: EngineRun;
  readonly #leaseTime: number;
  readonly #holder = crypto.randomUUID();
  readonly #keep: ((session: Unsaved) => void) | undefined;
  #version: SessionVersion;
  #saves: boolean;
  /** The lease that is stored. */
  #storedLease: Lease | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;

  constructor(
    store: SessionStore,
    run: EngineRun,
    { always, lease, keep }: MemoryWriterOptions,
  ) {
    this.#keep = keep;
    this.#store = store;
    this.#run = run;
    this.#leaseTime = lease;
    this.#version = run.claimed.version;
    this.#saves = always;
  }

  async claim(): Promise<boolean> {
    if (!this.#saves) return true;
    const isClaimed = await this.#save();
    if (isClaimed) this.#renewLater();
    return isClaimed;
  }

  checkpoint(position: Position): Promise<void> | undefined {
    const isDue = this.#saves && position.at === "model" && position.turn > 1;
    return isDue ? this.#saveOrAbort() : undefined;
  }

  async end(last: Event | undefined): Promise<boolean> {
    await this.#run.sink.settled?.();
    if (!this.#run.control.effects.saves) return true;
    if (last && !this.#saves) return this.#keepEnd(last);
    try {
      if (leavesNothing(this.#run)) return await this.#store.delete(this.#run.session).then(() => true);
      return await this.#save(last && endedSession(savedSession(this.#run), last));
    } catch (error) {
      await this.#removeRun(); // otherwise the session stays busy: no other process ends the run
      throw error;
    }
  }

  close(): void {
    clearTimeout(this.#renewal);
  }

  /** Keeps a run that was not saved. It ends as usual if there is no room for it. */
  #keepEnd(last: Event): true {
    const { control, loop, events } = this.#run;
    if (!this.#keep || control.effects.undo || loop.transcript.messages.length === 0) return true;
    try {
      this.#keep(endedSession(savedSession(this.#run), last));
    } catch (error) {
      events.report(error);
    }
    return true;
  }

  async #save(unleased = savedSession(this.#run)): Promise<boolean> {
    // a run that is taken over ends: its calls since the last save may have had effects that it does not know
    const lease = unleased.run && !unleased.run.exit
      ? { until: this.#leaseEnd(), closing: stops.lost.reason }
      : undefined;
    const session = { ...unleased, ...(lease && { lease }) };
    const { addition, version } = this.#version.next(session, { holder: this.#holder, isWriter: true });
    if (!await this.#store.append(session.id, addition)) return false;
    this.#version = version;
    this.#storedLease = lease;
    this.#saves = true;
    return true;
  }

  #leaseEnd(): number {
    return Math.ceil(Date.now() + this.#leaseTime);
  }

  #renewLater(): void {
    this.#renewal = startTimer(() => {
      this.#renewLater();
      this.#renew().catch((error) => this.#run.events.report(error));
    }, this.#leaseTime / 3);
  }

  /** Moves the end of the lease. If the session has changed meanwhile, the save that changed it has done so. */
  async #renew(): Promise<void> {
    const lease = this.#storedLease;
    if (!lease) return;
    const renewed = this.#storedLease = { ...lease, until: this.#leaseEnd() }; // at once, for the next renewal
    try {
      await this.#store.touch({ id: this.#run.session, version: this.#version.n, lease }, renewed.until);
    } catch (error) {
      if (this.#storedLease === renewed) this.#storedLease = lease;
      throw error;
    }
  }

  async #saveOrAbort(): Promise<void> {
    if (!await this.#save()) this.#run.control.abort(stops.lost);
  }

  /** Removes the run from the session as it is stored, which takes less room. */
  async #removeRun(): Promise<void> {
    const { session: id } = this.#run;
    const { session, version } = await openHead(this.#store, id);
    if (!session) return;
    const { run: _, ...head } = session;
    await changeHead(this.#store, id, version, head);
  }
}

// Sessions in the memory of this process: heads as JSON, and entries whose messages are copied and frozen once, so that no caller can change what is stored.

/** A session in memory. */
interface Stored extends StoredHead {
  /** The entries. The list is shared with later versions, which extend it. */
  readonly list: NumberedEntry[];
  /** The number of characters of the entries, as JSON. */
  readonly length: number;
  readonly options: EntryOptions;
}

/** The sessions of one process. */
type SessionCache = BoundedCache<Stored>;

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
  const [firstNumber = 1] = list[0] ?? [];
  return list.slice(Math.max(first - firstNumber, 0), Math.max(last - firstNumber + 1, 0));
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
function touchIn(sessions: SessionCache, { id, version, lease }: LeasedSession, until: number): boolean {
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

// The store `memory()`, and its options.

/** The bounds of `memory()`. */
export interface MemoryOptions {
  /** The number of sessions without a run. Beyond, the one that was saved longest ago is deleted. Default: 1,000. */
  readonly max?: number;
  /**
   * The bytes of all sessions as JSON, counted as two for each character. Beyond, sessions without a run are deleted, the one that was saved longest ago first.
   * If only sessions with a run are left, `save()` rejects with a `CapacityError`. Default: 67,108,864.
   */
  readonly maxBytes?: number;
  /** The same for the sessions of one owner. Default: a quarter of `maxBytes`. */
  readonly maxOwnerBytes?: number;
  /** Milliseconds after its last save that a session is deleted, unless a run is in progress. Default: never. */
  readonly expireIn?: number;
}

/**
 * Keeps sessions in the memory of this process.
 *
 * ```ts
 * import { agent, memory } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 *
 * const store = memory();
 * const assistant = agent({ model: scripted("Hello!", "Hello again!") });
 * await assistant.run({ prompt: "Hi", session: "s1", store }).result;
 * const { messages } = await assistant.run({ prompt: "Hi", session: "s1", store }).result;
 * assertEquals(messages.length, 4);
 * assertEquals(await store.list(), ["s1"]);
 * ```
 */
export function memory(options: MemoryOptions = {}): Store {
  expectNames("Cannot create memory()", options, boundNames);
  const sessions = sessionCache(options);
  /** The ends of leases, by session. */
  const leases = new Map<string, number>();

  /** Notes the lease of a stored session. */
  function note(id: string, until: number | null | undefined): void {
    if (typeof until === "number") leases.set(id, until);
    else if (until === null) leases.delete(id);
  }

  const operations = {
    ...sessionsIn(sessions),
    append: (id: string, addition: Addition) =>
      promiseTry(() => {
        const isStored = appendTo(sessions, id, addition);
        if (isStored) note(id, addition.until);
        return isStored;
      }),
  };
  return {
    ...operations,
    ...sessionsOf(operations),
    list({ after = "", limit = 100 } = {}) {
      return Promise.resolve(sessions.ids().filter((id) => id > after && isListed(id)).sort().slice(0, limit));
    },
    pending(before, limit) {
      for (const id of leases.keys()) if (!sessions.get(id)) leases.delete(id); // it was deleted, or has expired
      const due = [...leases].filter(([, until]) => until <= before).sort(([, a], [, b]) => a - b);
      return Promise.resolve(due.slice(0, limit).map(([id]) => id));
    },
    touch: (session, end) =>
      promiseTry(() => {
        const moved = touchIn(sessions, session, end);
        if (moved) leases.set(session.id, end);
        return moved;
      }),
  };
}

// The memory of one agent: it keeps the runs without a named session too, so that the session of a result continues the conversation.

/** The number of runs that are kept. Beyond, the oldest one is dropped. */
const maxRuns = 1_000;
/** The characters of all kept runs. Beyond, the oldest ones are dropped. */
const maxCharacters = 16_777_216;

/** A run that has ended, in the form in which its session is stored once it is continued: most never are. */
interface KeptRun {
  readonly session: Unsaved;
  readonly size: number;
}

/** Creates the memory of an agent. */
export function agentMemory(): RunStore {
  const sessions = sessionCache();
  const store = sessionsIn(sessions);
  const kept = new Map<string, KeptRun>();
  let left = maxCharacters;

  function take(id: string): KeptRun | undefined {
    const run = kept.get(id);
    if (run) left += run.size;
    kept.delete(id);
    return run;
  }

  function keep(session: Unsaved): void {
    const size = sizeOf(session);
    if (size > maxCharacters) throw new CapacityError(`Cannot keep session "${session.id}": it is too large`);
    kept.set(session.id, { session, size });
    left -= size;
    for (const oldest of kept.keys()) {
      if (left >= 0 && kept.size <= maxRuns) break;
      take(oldest);
    }
  }

  /** Stores a kept run, before its session is read. */
  function stored(id: string): Promise<unknown> {
    const run = take(id);
    const additionOf = (session: Unsaved) => SessionVersion.none.next(session, { holder: id, isWriter: true }).addition;
    return promiseTry(() => run && appendTo(sessions, id, additionOf(run.session)));
  }

  return {
    ...store,
    writer: (store, run: EngineRun, options) =>
      new MemoryWriter(store, run, { ...options, ...(!run.parent && { keep }) }),
    head: (id) => stored(id).then(() => store.head(id)),
    open: (id) => stored(id).then(() => store.open(id)),
    delete: (id) => stored(id).then(() => store.delete(id)),
  };
}

/** Returns the number of characters of a value, without a call of its `toJSON()`. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each), 8);
}
