/**
 * Sessions in Deno KV.
 *
 * @module
 */
import { expectNames } from "../../protocol/option_names.ts";
import { durable } from "../durable/mod.ts";
import type { Store } from "../../core/persistence/store.ts";
import { hashOf } from "../../core/lib/hash.ts";
import { usedUntil } from "../expiry.ts";
import { leaseEndOf, piecesOf, sessionOf, textOfSession } from "../pieces.ts";
import {
  type DenoKvOptions,
  expectKv,
  forget,
  type Head,
  isLive,
  join,
  type Piece,
  pieceLength,
  replace,
  see,
} from "./commit.ts";
import { canReuse, keepPieces, type KeptPiece, pieceLife } from "./pieces.ts";

interface SessionHead extends Head {
  readonly version: number;
  readonly pieces: readonly KeptPiece[];
  /** The end of the lease, which is in the index of leases too. */
  readonly lease: number | null;
}

/**
 * Keeps sessions in Deno KV. A save writes the pieces that have changed (the last ones if a transcript has grown), and atomically the list of the pieces:
 * readers see the session before or after the save, and one of two writers wins.
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
  const headOf = (id: string): Deno.KvKey => [...heads, id];
  const piecesUnder = (record: string): Deno.KvKey => [prefix, "session_piece", record];
  const pieceOf = (record: string, { name }: KeptPiece): Deno.KvKey => [...piecesUnder(record), name];
  const leases: Deno.KvKey = [prefix, "lease"];
  const leaseKey = (id: string, until: number | null = null): readonly [Deno.KvKey] | readonly [] =>
    until === null ? [] : [[...leases, until, id]];

  return durable({
    async load(id) {
      for (let missed: string | null = null;;) {
        const { head, versionstamp } = await see<SessionHead>(kv, headOf(id));
        if (!head) return undefined;
        const text = await join(kv, head.pieces.map((piece) => pieceOf(head.record, piece)));
        if (text !== undefined) return sessionOf(text, head.version, head.lease ?? null);
        if (missed === versionstamp) throw new Error(`Cannot load session "${id}": a piece of it is missing`);
        missed = versionstamp; // the session was saved in between
      }
    },

    async save(session) {
      const key = headOf(session.id);
      const seen = await see<SessionHead>(kv, key);
      const { record = crypto.randomUUID(), version = 0, pieces: old = [], lease: before } = seen.head ?? {};
      if (version !== session.version) return undefined;
      const lease = leaseEndOf(session);

      const until = usedUntil(lease);
      const reusable = old.filter((piece) => canReuse(piece, until, expireIn));
      const known = new Map(reusable.map((piece) => [piece.hash, piece]));
      const added: Piece[] = [];
      const pieces: KeptPiece[] = [];
      for (const text of piecesOf(textOfSession(session), pieceLength)) {
        const hash = await hashOf(text);
        const piece = known.get(hash) ?? { name: crypto.randomUUID(), hash, at: until };
        if (!known.has(hash)) added.push([pieceOf(record, piece), text]);
        pieces.push(piece);
      }

      const done = await replace(kv, {
        key,
        seen,
        head: { record, version: version + 1, pieces, lease, expires: until + expireIn },
        pieces: added,
        dropped: [
          ...leaseKey(session.id, before),
          ...old.filter((piece) => !pieces.includes(piece)).map((piece) => pieceOf(record, piece)),
        ],
        indexed: leaseKey(session.id, lease)[0],
        expireIn: pieceLife(until, expireIn),
      });
      return done && version + 1;
    },

    delete: (id) => forget<SessionHead>(kv, headOf(id), piecesUnder, ({ lease }) => leaseKey(id, lease)),

    async list({ after = "", limit = 100 } = {}) {
      const ids: string[] = [];
      for await (const { key, value } of kv.list<SessionHead>({ prefix: heads, start: headOf(after) })) {
        const id = String(key[2]);
        if (id !== after && isLive(value)) ids.push(id);
        if (ids.length >= limit) break;
      }
      return ids;
    },

    async pending(before, limit) {
      const ids: string[] = [];
      const end: Deno.KvKey = [...leases, before + 1];
      for await (const { key, value: expires } of kv.list<number>({ start: leases, end })) {
        if (expires > Date.now()) ids.push(String(key[3]));
        if (ids.length >= limit) break;
      }
      return ids;
    },

    async touch(session, lease) {
      const { id, version } = session;
      const key = headOf(id);
      const seen = await see<SessionHead>(kv, key);
      const { head } = seen;
      if (!head || head.lease === null || head.version !== version || head.lease !== leaseEndOf(session)) return false;
      const until = usedUntil(lease);
      const keyOf = (piece: KeptPiece) => pieceOf(head.record, piece);
      const kept = await keepPieces(kv, head.pieces, { keyOf, usedUntil: until, expireIn });
      const done = kept && await replace(kv, {
        key,
        seen,
        head: { ...head, pieces: kept.pieces, lease, expires: until + expireIn },
        pieces: kept.added,
        dropped: [...leaseKey(id, head.lease), ...kept.dropped],
        indexed: leaseKey(id, lease)[0],
        expireIn: pieceLife(until, expireIn),
      });
      return done !== undefined;
    },
  });
}
