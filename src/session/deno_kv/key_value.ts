/**
 * Texts by key in Deno KV.
 *
 * @module
 */
import type { KeyValue } from "../../protocol/key_value.ts";
import {
  type DenoKvOptions,
  expectKv,
  forget,
  type Head,
  join,
  type Piece,
  pieceLength,
  replace,
  see,
  type Seen,
} from "./commit.ts";
import { sumOf } from "../key_value/encoding.ts";
import { piecesOf } from "../pieces.ts";

interface ValueHead extends Head {
  /** The number of pieces of the text; 0 if the text is `text`. */
  readonly pieces: number;
  readonly text: string;
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

  /** Replaces the text that was seen. Returns false if another writer was faster. */
  async function put(key: string, seen: Seen<ValueHead>, text: string, expires: number): Promise<boolean> {
    const record = crypto.randomUUID();
    const texts = text.length > pieceLength ? piecesOf(text, pieceLength) : [];
    const head = { record, expires, pieces: texts.length, text: texts.length > 0 ? "" : text };
    const done = await replace<ValueHead>(kv, {
      key: headOf(key),
      seen,
      head,
      pieces: texts.map((piece, index): Piece => [[...piecesUnder(record), index], piece]),
      dropped: seen.head ? keysOf(seen.head) : [],
      expireIn: expires - Date.now(),
    });
    return done !== undefined;
  }

  return {
    async get(key) {
      for (let missed: string | null = null;;) {
        const { head, versionstamp } = await see<ValueHead>(kv, headOf(key));
        const text = head && await textOf(head);
        if (!head || text !== undefined) return text;
        if (missed === versionstamp) throw new Error(`Cannot read "${key}": a piece of its text is missing`);
        missed = versionstamp; // the text was replaced in between
      }
    },
    async set(key, value, { expireIn = Infinity } = {}) {
      while (!await put(key, await see(kv, headOf(key)), value, Date.now() + expireIn));
    },
    async increment(key, { by = 1, expireIn = Infinity } = {}) {
      for (;;) {
        const seen = await see<ValueHead>(kv, headOf(key));
        const sum = sumOf(key, seen.head && await textOf(seen.head), by);
        if (await put(key, seen, String(sum), seen.head?.expires ?? Date.now() + expireIn)) return sum;
      }
    },
    delete: (key) => forget(kv, headOf(key), piecesUnder),
  };
}
