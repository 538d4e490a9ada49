/**
 * Sessions in Deno KV. A journal is a head, and pieces of entries and of events, which a commit stores together.
 *
 * @module
 */
import {
  type Append,
  type Appended,
  headAfter,
  isSameMark,
  type Journal,
  type JournalEntry,
  type JournalHead,
  type JournalPage,
  outcomeOf,
  type TimelessHead,
} from "../../core/journal.ts";
import type { Store } from "../../core/store.ts";
import { expectNames } from "../../protocol/shape.ts";
import { storeOf } from "../earlier_rows.ts";
import { deltasEveryDefault, type PackedRow, pageOf, rangeOf } from "../journal_rows.ts";
import { pageLength, piecesOf, textOfEntries, textOfLines } from "../pieces.ts";
import {
  commitPieces,
  type DenoKvOptions,
  expectKv,
  type Head,
  isLive,
  type Piece,
  pieceLength,
  readEntries,
} from "./commit.ts";
import { denoKvEarlierRows } from "./earlier_rows.ts";

/** A head as it is stored. The keys of entries and events contain its record, which no other journal has. */
interface StoredHead extends Head, TimelessHead {
  /** The time at which another process must look; null: not at all. */
  readonly dueAt: number | null;
  /** The time at which the last run was over; null or missing: it is not over, or its events have been swept. */
  readonly endedAt?: number | null;
  /** Milliseconds after its last change that it expires. */
  readonly keep: number;
}

/** A head and its version. */
interface Seen {
  readonly head: StoredHead | undefined;
  /** The head that is stored, also if it has expired. */
  readonly stored: StoredHead | undefined;
  readonly versionstamp: string | null;
}

/** The most heads that a process remembers, and the most keys that a commit deletes. */
const [mostLeft, keysPerCommit] = [100, 100];

/**
 * Keeps sessions in Deno KV. An append stores new entries, events and the head of the session atomically: readers see the session before or after it, and one
 * of two writers wins. Sessions that have expired are deleted by `sweep()` of the app.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { denoKvStore } from "@jizai/jizai/session/deno_kv";
 * import { assertEquals } from "@std/assert";
 *
 * using kv = await Deno.openKv(":memory:");
 * const store = denoKvStore(kv, { expireIn: 30 * 24 * 60 * 60 * 1_000 });
 * await agent({ model: scripted("Hello!") }).run({ prompt: "Hi", session: "s1", store }).result;
 * assertEquals((await store.load("s1"))?.messages.length, 2);
 * ```
 */
export function denoKvStore(kv: Deno.Kv, options: DenoKvOptions = {}): Store {
  expectNames("Cannot create denoKvStore()", options, ["prefix", "expireIn", "deltasEvery"]);
  return storeOf(denoKvJournal(kv, options), denoKvEarlierRows(kv, options.prefix ?? "jizai"));
}

// Journals in Deno KV.

/** Creates journals. */
export function denoKvJournal(
  kv: Deno.Kv,
  { prefix = "jizai", expireIn = Infinity, deltasEvery = deltasEveryDefault }: DenoKvOptions = {},
): Journal {
  expectKv(kv);
  const headKey = (key: string): Deno.KvKey => [prefix, "journal", key];
  const entriesUnder = ({ record }: Head): Deno.KvKey => [prefix, "journal_entry", record];
  const eventsUnder = ({ record }: Head, run: number): Deno.KvKey => [prefix, "journal_event", record, run];
  const sessionsOf = (owner = ""): Deno.KvKey => [prefix, "journal_of", owner];
  const indexKey = (name: string): Deno.KvKey => [prefix, `journal_${name}`];
  const [dues, expiries, ends] = [indexKey("due"), indexKey("expiry"), indexKey("end")];
  /** The journals that this process has appended to last, as it left them: a commit fails if another process was faster. */
  const left = new Map<string, Seen>();

  /** Returns the keys that find a journal. */
  function indexOf(key: string, head: StoredHead | undefined): readonly Deno.KvKey[] {
    if (!head) return [];
    const { session, owner, dueAt, endedAt, expires } = head;
    return [
      ...session === undefined ? [] : [[...sessionsOf(owner), session]],
      ...dueAt === null ? [] : [[...dues, dueAt, key]],
      ...endedAt == null ? [] : [[...ends, endedAt, key]],
      ...expires < Infinity ? [[...expiries, expires, key]] : [],
    ];
  }

  async function see(key: string): Promise<Seen> {
    const { value, versionstamp } = await kv.get<StoredHead>(headKey(key));
    return { head: value && isLive(value) ? value : undefined, stored: value ?? undefined, versionstamp };
  }

  /** Stores a head and pieces, unless another process was faster. */
  async function commit(
    key: string,
    { stored, versionstamp }: Seen,
    head: StoredHead,
    pieces: readonly Piece[],
  ): Promise<boolean> {
    const operation = kv.atomic().check({ key: headKey(key), versionstamp }).set(headKey(key), head);
    const names = (head: StoredHead | undefined) =>
      new Map(indexOf(key, head).map((each) => [JSON.stringify(each), each]));
    const [before, after] = [names(stored), names(head)];
    for (const [name, each] of before) if (!after.has(name)) operation.delete(each);
    for (const [name, each] of after) if (!before.has(name) || stored?.record !== head.record) operation.set(each, key);
    const result = await commitPieces(kv, operation, pieces);
    left.delete(key);
    if (!result.ok) return false;
    left.set(key, { head, stored: head, versionstamp: result.versionstamp });
    for (const oldest of left.keys()) if (left.size > mostLeft) left.delete(oldest);
    if (stored && stored.record !== head.record) await deletePieces(stored);
    return true;
  }

  async function deletePieces(head: Head): Promise<void> {
    for (const under of [entriesUnder(head), eventsUnder(head, 0).slice(0, 3)]) {
      await deleteAll(kv.list({ prefix: under }));
    }
  }

  /** Deletes what a list finds, in groups: a long session has thousands of pieces. */
  async function deleteAll(found: Deno.KvListIterator<unknown>): Promise<void> {
    const keys: Deno.KvKey[] = [];
    const deleteKeys = () => keys.splice(0).reduce((operation, key) => operation.delete(key), kv.atomic()).commit();
    for await (const { key } of found) {
      if (keys.push(key) === keysPerCommit) await deleteKeys();
    }
    if (keys.length > 0) await deleteKeys();
  }

  async function remove(key: string, onlyIf: (head: StoredHead) => boolean = () => true): Promise<void> {
    for (;;) {
      const { stored, versionstamp } = await see(key);
      if (!stored || !onlyIf(stored)) return;
      const operation = kv.atomic().check({ key: headKey(key), versionstamp }).delete(headKey(key));
      for (const each of indexOf(key, stored)) operation.delete(each);
      if ((await operation.commit()).ok) return await deletePieces(stored);
    }
  }

  /** Deletes the events of runs that are over, unless another one has begun meanwhile. */
  async function deleteEnded(key: string, keep: number): Promise<void> {
    const seen = await see(key);
    const { head } = seen;
    if (head?.endedAt == null || head.endedAt > Date.now() - keep) return;
    if (head.state === "over") await deleteEvents(head, head.run + 1);
    await commit(key, seen, { ...head, endedAt: null }, []);
  }

  /** Deletes the events of runs before `run`. */
  async function deleteEvents(head: Head, run: number): Promise<void> {
    await deleteAll(kv.list({ start: eventsUnder(head, 0), end: eventsUnder(head, run) }));
  }

  /** Returns the keys in an index up to a time, at most `limit`. */
  async function earliestIn(index: Deno.KvKey, before: number, limit: number): Promise<readonly string[]> {
    if (limit < 1) return [];
    return await Array.fromAsync(
      kv.list<string>({ start: index, end: [...index, before + 1] }, { limit }),
      ({ value }) => value,
    );
  }

  async function append(key: string, addition: Append): Promise<Appended | undefined> {
    const { change, events, due } = addition;
    for (;;) {
      const known = left.get(key);
      const isNext = known?.head && isLive(known.head) && isSameMark(known.head.mark, addition.from);
      const seen = isNext ? known : await see(key);
      const { head } = seen;
      const moved = headAfter(addition, head);
      if (!moved && !isNext) return outcomeOf(addition, head);
      left.delete(key);
      if (!moved) continue;
      const next = expiring({
        ...head ?? newHead(addition, moved, expireIn),
        ...moved,
        endedAt: !change ? head?.endedAt ?? null : moved.state === "over" && moved.run > 0 ? Date.now() : null,
        dueAt: due === undefined ? head?.dueAt ?? null : due === null ? null : Math.ceil(Date.now() + due),
      });
      const writer = crypto.randomUUID();
      const entries = change ? entryPieces(next, change.last + 1, writer, change.entries) : [];
      const lines = events ? piecesOf(textOfLines(events.lines), pieceLength) : [];
      const under = [...eventsUnder(next, next.run), events?.first ?? 1, next.events, writer];
      const pieces = [...entries, ...lines.map((text, part): Piece => [[...under, part], text])];
      if (await commit(key, seen, next, pieces)) return { stored: true, last: next.last };
    }
  }

  function entryPieces(head: Head, first: number, writer: string, entries: readonly JournalEntry[]): readonly Piece[] {
    return piecesOf(textOfEntries(entries), pieceLength)
      .map((text, part): Piece => [[...entriesUnder(head), first, writer, part], text]);
  }

  /** Reads the additions of a run's events from the one on that contains an event, up to a number of characters. */
  async function readAdditions(head: Head, run: number, first: number, most: number) {
    const all = eventsUnder(head, run);
    const before = kv.list({ start: all, end: [...all, first + 1] }, { reverse: true, limit: 1 });
    const [start = all] = await Array.fromAsync(before, ({ key }) => key.slice(0, 5));
    const rows: PackedRow[] = [];
    let writer: string | undefined;
    let length = 0;
    for await (const { key, value: text } of kv.list<string>({ start, end: eventsUnder(head, run + 1) })) {
      const [first, last, by, part] = key.slice(4);
      if (part === 0) {
        if (length >= most) break;
        writer = `${String(last)} ${String(by)}`;
      }
      if (writer !== `${String(last)} ${String(by)}`) continue; // of an append that failed
      rows.push({ first: Number(first), last: Number(last), part: Number(part), text });
      length += text.length;
    }
    return rows;
  }

  /** Returns the number of the last event of a run; 0 if it has none left. */
  async function lastEventOf(head: Head, run: number): Promise<number> {
    const all = kv.list({ start: eventsUnder(head, run), end: eventsUnder(head, run + 1) }, { reverse: true });
    for await (const { key } of all) if (key[7] === 0) return Number(key[5]);
    return 0;
  }

  /** Repeats what reads several keys if the journal was deleted or created anew in between. */
  async function reading<T>(key: string, read: (head: StoredHead) => Promise<T>): Promise<T | undefined> {
    for (let missed: string | null = null;;) {
      const { head, versionstamp } = await see(key);
      if (!head) return undefined;
      try {
        return await read(head);
      } catch (error) {
        if (missed === versionstamp) throw error;
        missed = versionstamp;
      }
    }
  }

  return {
    deltasEvery,
    async head(key) {
      const { head } = await see(key);
      return head && headOf(head);
    },
    open: (key) =>
      reading(
        key,
        async (head) => ({
          ...headOf(head),
          entries: await readEntries(kv, head.session ?? key, entriesUnder(head), {
            first: head.base,
            last: head.last,
          }),
        }),
      ),
    entries: async (key, first, last) =>
      await reading(
        key,
        (head) => readEntries(kv, head.session ?? key, entriesUnder(head), rangeOf(head, first, last)),
      ) ?? [],
    append,
    async post(key, { run, entry, most }) {
      for (;;) {
        const seen = await see(key);
        const { head } = seen;
        if (!head || head.run !== run || head.state !== "running") return { status: "over" };
        if (most !== undefined && head.waiting >= most) return { status: "full" };
        const last = head.last + 1;
        const next = expiring({ ...head, last, waiting: head.waiting + (most === undefined ? 0 : 1) });
        const pieces = entryPieces(head, last, crypto.randomUUID(), [entry]);
        if (await commit(key, seen, next, pieces)) return { status: "posted", last };
      }
    },
    read: (key, run, after) =>
      reading(key, async (head): Promise<JournalPage | undefined> => {
        const end = await lastEventOf(head, run);
        const rows = end > after ? await readAdditions(head, run, after + 1, pageLength) : [];
        return pageOf(headOf(head), { run, after, end }, rows);
      }),
    watch(key, { notify, fail }) {
      const changes = kv.watch([headKey(key)]).getReader();
      let hasEnded = false;
      async function pass(): Promise<void> {
        while (!(await changes.read()).done && !hasEnded) notify();
      }
      pass().catch((error) => hasEnded || fail(error));
      return () => {
        hasEnded = true;
        changes.cancel().catch(() => {}); // the watcher has left
      };
    },
    async pending(limit, within = 0) {
      const found: string[] = [];
      const end = [...dues, Date.now() + within + 1];
      for await (const { value: key } of kv.list<string>({ start: dues, end })) {
        if ((await see(key)).head) found.push(key);
        if (found.length >= limit) break;
      }
      return found.slice(0, limit);
    },
    async list({ owner, after = "", limit = 100 } = {}) {
      const sessions: string[] = [];
      const all = sessionsOf(owner);
      for await (const { key, value } of kv.list<string>({ prefix: all, start: [...all, after] })) {
        const session = String(key[3]);
        if (session !== after && (await see(value)).head) sessions.push(session);
        if (sessions.length >= limit) break;
      }
      return sessions;
    },
    async trim(key, run) {
      const { head } = await see(key);
      if (head) await deleteEvents(head, run);
    },
    async sweep(limit, keep) {
      const now = Date.now();
      const expired = await earliestIn(expiries, now, limit);
      for (const key of expired) await remove(key, (head) => !isLive(head));
      const ended = await earliestIn(ends, now - keep, limit - expired.length);
      for (const key of ended) await deleteEnded(key, keep);
      return expired.length + ended.length;
    },
    async delete(...keys) {
      for (const key of keys) await remove(key);
    },
  };
}

/** Returns the head of a new journal. */
function newHead({ created: { expireIn } = {} }: Append, head: TimelessHead, keep: number): StoredHead {
  return { ...head, dueAt: null, keep: expireIn ?? keep, expires: Infinity, record: crypto.randomUUID() };
}

/** Returns a head that has changed now, with the time at which it expires. */
function expiring(head: StoredHead): StoredHead {
  return { ...head, expires: Math.max(Date.now(), head.dueAt ?? 0) + head.keep };
}

function headOf({ record: _, expires: __, keep: ___, endedAt: ____, dueAt, ...head }: StoredHead): JournalHead {
  return { ...head, due: dueAt === null ? null : dueAt - Date.now() };
}
