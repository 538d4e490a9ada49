/**
 * Sessions in Deno KV.
 *
 * @module
 */
import { type Addition, type Mark, type Store, type StoredHead, UnreadableError } from "../../core/store.ts";
import { expectNames } from "../../protocol/shape.ts";
import { isSameMark } from "../../core/session_version.ts";
import { durable } from "../durable/mod.ts";
import { usedUntil } from "../expiry.ts";
import { piecesOf, textOfEntries } from "../pieces.ts";
import {
  type DenoKvOptions,
  expectKv,
  forget,
  type Head,
  isLive,
  join,
  type Piece,
  pieceLength,
  readEntries,
  replace,
  see,
  type Seen,
} from "./commit.ts";

/** The head of a session. The members of `moved` stop versions of the package before them, which read other members. */
interface SessionHead extends Head {
  readonly mark: Mark;
  readonly base: number;
  readonly last: number;
  readonly until: number | null;
  readonly text: string;
  /** The time from which its oldest entries live on, in milliseconds since 1970. */
  readonly at: number;
}

/** The head of a session that an earlier version of the package has written: its text is in pieces. */
interface WholeHead extends Head {
  readonly version: number;
  readonly pieces: readonly { readonly name: string }[];
  readonly lease: number | null;
}

const moved = { version: -1, pieces: "in entries" } as const;

/**
 * Keeps sessions in Deno KV. A save writes the entries that are new, and atomically the head of the session: readers see the session before or after the save, and
 * one of two writers wins. With `expireIn`, a session that is in use is written anew once in that time.
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
  expectNames("Cannot create denoKvStore()", options, ["prefix", "expireIn"]);
  const { prefix = "jizai", expireIn = Infinity } = options;
  expectKv(kv);
  const heads: Deno.KvKey = [prefix, "session"];
  const headKey = (id: string): Deno.KvKey => [...heads, id];
  const entriesUnder = (record: string): Deno.KvKey => [prefix, "session_entry", record];
  const piecesUnder = (record: string): Deno.KvKey => [prefix, "session_piece", record];
  /** The indexes of the ends of leases: that of entries, and that of earlier versions of the package. */
  const [ends, leases]: readonly [Deno.KvKey, Deno.KvKey] = [[prefix, "session_end"], [prefix, "lease"]];
  const endKey = (id: string, head: SessionHead | WholeHead | undefined): readonly Deno.KvKey[] => {
    if (!head) return [];
    if ("mark" in head) return head.until === null ? [] : [[...ends, head.until, id]];
    return head.lease === null ? [] : [[...leases, head.lease, id]];
  };
  const keyOfPiece = (record: string, { holder, n }: Mark, first: number, part: number): Deno.KvKey => [
    ...entriesUnder(record),
    first,
    `${holder}:${n}`,
    part,
  ];

  const seeHead = (id: string) => see<SessionHead | WholeHead>(kv, headKey(id));

  /** Returns a stored head; undefined if the session was saved while it was read. */
  async function storedHead(head: SessionHead | WholeHead): Promise<StoredHead | undefined> {
    if ("mark" in head) {
      const { mark, base, last, until, text } = head;
      return { mark, base, last, until, head: text };
    }
    const text = await join(kv, head.pieces.map(({ name }) => [...piecesUnder(head.record), name]));
    return text === undefined
      ? undefined
      : { mark: { holder: "", n: head.version }, base: 1, last: 0, until: head.lease, head: text };
  }

  /** Reads a head, and what else `more` reads of the same version of the session. Throws if a part of it is missing. */
  async function read<T>(id: string, more: (head: StoredHead, record: string) => Promise<T>): Promise<T | undefined> {
    for (let missed: string | null = null;;) {
      const { head, versionstamp } = await seeHead(id);
      if (!head) return undefined;
      try {
        const stored = await storedHead(head);
        if (!stored) throw new UnreadableError(`Cannot read session "${id}": a piece of it is missing`);
        return await more(stored, head.record);
      } catch (error) {
        if (missed === versionstamp) throw error;
        missed = versionstamp; // the session may have been saved in between
      }
    }
  }

  /** Returns a record whose entries live until `until` and longer: that of `head`, or a copy, whose pieces are written with the next commit. */
  async function livingRecord(id: string, head: SessionHead | undefined, until: number) {
    const { record = crypto.randomUUID(), at = until, last = 0, mark } = head ?? {};
    if (!mark || at >= until - expireIn) return { record, at, pieces: [] };
    const copy = crypto.randomUUID();
    const entries = await readEntries(kv, id, entriesUnder(record), { first: 1, last });
    const text = textOfEntries(entries.map(([, entry]) => entry));
    const pieces = piecesOf(text, pieceLength).map((text, part): Piece => [keyOfPiece(copy, mark, 1, part), text]);
    return { record: copy, at: until, pieces };
  }

  /** Replaces a head. The entries of a record that was copied are deleted afterwards. */
  async function put(
    id: string,
    seen: Seen<SessionHead | WholeHead>,
    next: Pick<SessionHead, "mark" | "base" | "last" | "until" | "text">,
    added: (record: string) => readonly Piece[],
  ): Promise<boolean> {
    const { head: old } = seen;
    const until = usedUntil(next.until);
    const { record, at, pieces } = await livingRecord(id, old && "mark" in old ? old : undefined, until);
    const head = { ...next, record, at, expires: until + expireIn, ...moved };
    const done = await replace<Head>(kv, {
      key: headKey(id),
      seen,
      head,
      pieces: [...added(record), ...pieces],
      dropped: endKey(id, old),
      indexed: endKey(id, head)[0],
      expireIn: until - Date.now() + 2 * expireIn,
    });
    if (done && old && old.record !== record) {
      for (const under of [entriesUnder(old.record), piecesUnder(old.record)]) {
        for await (const { key } of kv.list({ prefix: under })) await kv.delete(key);
      }
    }
    return done !== undefined;
  }

  async function append(id: string, addition: Addition): Promise<boolean> {
    const { from, to, entries, first, base, head: text } = addition;
    for (;;) {
      const seen = await seeHead(id);
      const { head } = seen;
      const stored = head && ("mark" in head ? head.mark : { holder: "", n: head.version });
      if (isSameMark(stored, to)) return true;
      if (stored ? !isSameMark(stored, from) : from) return false;
      const { until = head && "mark" in head ? head.until : head?.lease ?? null } = addition;
      const next = { mark: to, base, last: first + entries.length - 1, until, text };
      const texts = entries.length > 0 ? piecesOf(textOfEntries(entries), pieceLength) : [];
      const added = (record: string) => texts.map((text, part): Piece => [keyOfPiece(record, to, first, part), text]);
      if (await put(id, seen, next, added)) return true; // otherwise the head was changed, perhaps only its lease
    }
  }

  return durable({
    head: (id) => read(id, (head) => Promise.resolve(head)),
    open: (id) =>
      read(
        id,
        async (head, record) => ({
          ...head,
          entries: await readEntries(kv, id, entriesUnder(record), { first: head.base, last: head.last }),
        }),
      ),
    entries: async (id, first, last) =>
      await read(id, (_, record) => readEntries(kv, id, entriesUnder(record), { first, last })) ?? [],
    append,

    async delete(id) {
      const { head } = await seeHead(id);
      await forget<SessionHead | WholeHead>(kv, headKey(id), entriesUnder, (head) => endKey(id, head));
      if (head && !("mark" in head)) {
        for await (const { key } of kv.list({ prefix: piecesUnder(head.record) })) await kv.delete(key);
      }
    },

    async list({ after = "", limit = 100 } = {}) {
      const ids: string[] = [];
      for await (const { key, value } of kv.list<Head>({ prefix: heads, start: headKey(after) })) {
        const id = String(key[2]);
        if (id !== after && isLive(value)) ids.push(id);
        if (ids.length >= limit) break;
      }
      return ids;
    },

    async pending(before, limit) {
      const found: (readonly [end: number, id: string])[] = [];
      for (const start of [ends, leases]) {
        let count = 0;
        for await (const { key, value: expires } of kv.list<number>({ start, end: [...start, before + 1] })) {
          if (expires <= Date.now()) continue;
          found.push([Number(key[2]), String(key[3])]);
          if (++count >= limit) break;
        }
      }
      return found.sort(([a], [b]) => a - b).slice(0, limit).map(([, id]) => id);
    },

    async touch({ id, version, lease }, until) {
      const seen = await seeHead(id);
      const { head } = seen;
      const stored = head && await storedHead(head);
      if (!stored || !lease || stored.mark.n !== version || stored.until !== Math.trunc(lease.until)) return false;
      if ("mark" in head) return await put(id, seen, { ...head, until }, () => []);
      const moved = { ...head, lease: until, expires: usedUntil(until) + expireIn };
      const dropped = endKey(id, head);
      const [indexed] = endKey(id, moved);
      const life = usedUntil(until) - Date.now() + 2 * expireIn;
      return await replace<Head>(kv, {
        key: headKey(id),
        seen,
        head: moved,
        pieces: [],
        dropped,
        indexed,
        expireIn: life,
      }) !==
        undefined;
    },
  });
}
