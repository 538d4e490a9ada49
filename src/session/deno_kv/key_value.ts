/**
 * Texts by key in Deno KV.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import {
  commitPieces,
  type DenoKvOptions,
  expectKv,
  type Head,
  isLive,
  join,
  type Piece,
  pieceLength,
} from "./commit.ts";
import { sumOf } from "../key_value/encoding.ts";
import { piecesOf } from "../pieces.ts";

interface ValueHead extends Head {
  /** The number of pieces of the text; 0 if the text is `text`. */
  readonly pieces: number;
  readonly text: string;
}

/** A head and its version, for a commit that must replace this version. */
interface Seen {
  readonly head: ValueHead | undefined;
  readonly versionstamp: string | null;
}

/**
 * Keeps texts by key in Deno KV.
 *
 * ```ts
 * import { denoKvKeyValue } from "@jizai/jizai/session/deno_kv";
 * import { assertEquals } from "@std/assert";
 *
 * using kv = await Deno.openKv(":memory:");
 * assertEquals(await denoKvKeyValue(kv).increment("visits"), 1);
 * ```
 */
export function denoKvKeyValue(kv: Deno.Kv, { prefix = "jizai" }: Pick<DenoKvOptions, "prefix"> = {}): KeyValue {
  expectKv(kv);
  const headOf = (key: string): Deno.KvKey => [prefix, "value", key];
  const piecesUnder = (record: string): Deno.KvKey => [prefix, "value_piece", record];

  function keysOf({ record, pieces }: ValueHead): Deno.KvKey[] {
    return Array.from({ length: pieces }, (_, index) => [...piecesUnder(record), index]);
  }

  /** Returns the text of a head. Returns nothing if one of its pieces was deleted meanwhile. */
  async function textOf(head: ValueHead): Promise<string | undefined> {
    return head.pieces === 0 ? head.text : await join(kv, keysOf(head));
  }

  /** Reads a head. An expired head counts as none. */
  async function see(key: string): Promise<Seen> {
    const { value, versionstamp } = await kv.get<ValueHead>(headOf(key));
    return { head: value && isLive(value) ? value : undefined, versionstamp };
  }

  /** Replaces the text that was seen. Returns false if another writer was faster. */
  async function put(key: string, { head: old, versionstamp }: Seen, text: string, expires: number): Promise<boolean> {
    const record = crypto.randomUUID();
    const texts = text.length > pieceLength ? piecesOf(text, pieceLength) : [];
    const pieces = texts.map((piece, index): Piece => [[...piecesUnder(record), index], piece]);
    const head: ValueHead = { record, expires, pieces: texts.length, text: texts.length > 0 ? "" : text };
    const expiry = expires < Infinity ? { expireIn: Math.max(1, expires - Date.now()) } : {}; // a counter may expire while it is added to
    const operation = kv.atomic().check({ key: headOf(key), versionstamp }).set(headOf(key), head, expiry);
    for (const each of old ? keysOf(old) : []) operation.delete(each);
    return (await commitPieces(kv, operation, pieces, expiry)).ok;
  }

  return {
    async get(key) {
      for (let missed: string | null = null;;) {
        const { head, versionstamp } = await see(key);
        const text = head && await textOf(head);
        if (!head || text !== undefined) return text;
        if (missed === versionstamp) throw new Error(`Cannot read "${key}": a piece of its text is missing`);
        missed = versionstamp; // the text was replaced in between
      }
    },
    async set(key, value, { expireIn = Infinity } = {}) {
      while (!await put(key, await see(key), value, Date.now() + expireIn));
    },
    async increment(key, { by = 1, expireIn = Infinity } = {}) {
      for (;;) {
        const seen = await see(key);
        const sum = sumOf(key, seen.head && await textOf(seen.head), by);
        if (await put(key, seen, String(sum), seen.head?.expires ?? Date.now() + expireIn)) return sum;
      }
    },
    async delete(key) {
      for (;;) {
        const { value, versionstamp } = await kv.get<ValueHead>(headOf(key));
        if (!value) return;
        const { ok } = await kv.atomic().check({ key: headOf(key), versionstamp }).delete(headOf(key)).commit();
        if (!ok) continue; // it was replaced in between
        for await (const piece of kv.list({ prefix: piecesUnder(value.record) })) await kv.delete(piece.key);
        return;
      }
    },
  };
}
