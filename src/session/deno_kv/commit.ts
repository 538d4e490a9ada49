/**
 * Values in Deno KV, as a head and pieces: the database accepts values of at most 64 KiB and commits of at most 800 KiB.
 *
 * @module
 */
import type { DeltaOptions } from "../journal_rows.ts";
import type { NumberedJournalEntry } from "../../core/journal.ts";
import { expectMethods } from "../expiry.ts";
import { entriesOf, type PieceRow } from "../pieces.ts";

/** Options of `denoKvStore()`. */
export interface DenoKvOptions extends DeltaOptions {
  /** The first part of every key. Default: "jizai". */
  readonly prefix?: string;
  /** Milliseconds after its last change that an entry is deleted; for the session of an active run, after the end of its lease. Default: never. */
  readonly expireIn?: number;
}

/** The head of a value. It refers to the pieces. */
export interface Head {
  /** The prefix of the keys of its pieces, which is unique. */
  readonly record: string;
  /** In milliseconds since 1970. */
  readonly expires: number;
}

/** A head and its version, for a commit that must replace this version. */
export interface Seen<H extends Head> {
  readonly head: H | undefined;
  readonly versionstamp: string | null;
}

/** The key and the text of a piece. A text has at most `pieceLength` characters. */
export type Piece = readonly [key: Deno.KvKey, text: string];

/** The most characters of a piece. A character has two bytes. */
export const pieceLength = 30_000;

/** The most pieces of one commit beside a head. */
const piecesPerCommit = 10;

/** Whether a head has not expired. The database deletes expired entries late. */
export function isLive(head: Head): boolean {
  return head.expires > Date.now();
}

/** Throws a `TypeError` if a value is not a Deno KV database. */
export function expectKv(kv: Deno.Kv): void {
  const message = 'Cannot use the database: expected one that Deno.openKv() opened, on Deno with "unstable": ["kv"]';
  expectMethods(kv, ["get", "atomic", "watch"], message);
}

/** Reads a head. An expired head counts as none. */
export async function see<H extends Head>(kv: Deno.Kv, key: Deno.KvKey): Promise<Seen<H>> {
  const { value, versionstamp } = await kv.get<H>(key);
  return { head: value && isLive(value) ? value : undefined, versionstamp };
}

/** Joins the texts of pieces. Returns nothing if one of them was deleted meanwhile. */
export async function join(kv: Deno.Kv, keys: readonly Deno.KvKey[]): Promise<string | undefined> {
  return (await textsOf(kv, keys))?.join("");
}

/** Reads the texts of pieces. Returns nothing if one of them was deleted meanwhile. */
async function textsOf(kv: Deno.Kv, keys: readonly Deno.KvKey[]): Promise<readonly string[] | undefined> {
  const texts: string[] = [];
  for (let at = 0; at < keys.length; at += 10) { // the most keys of one read
    for (const { value } of await kv.getMany<string[]>(keys.slice(at, at + 10))) {
      if (value === null) return undefined;
      texts.push(value);
    }
  }
  return texts;
}

/**
 * Writes pieces and, atomically with the last of them, the head that refers to them. Returns the new head, or nothing if another writer has replaced the old
 * one. The pieces are kept for at least `expireIn` milliseconds.
 */
export async function replace<H extends Head>(
  kv: Deno.Kv,
  { key, seen, head, pieces, dropped, expireIn }: {
    readonly key: Deno.KvKey;
    readonly seen: Seen<H>;
    readonly head: H;
    readonly pieces: readonly Piece[];
    readonly dropped: readonly Deno.KvKey[];
    readonly expireIn: number;
  },
): Promise<Seen<H> | undefined> {
  const before = pieces.slice(piecesPerCommit); // than one commit accepts are written before: no head refers to them yet
  for (let at = 0; at < before.length; at += piecesPerCommit) {
    await set(kv.atomic(), before.slice(at, at + piecesPerCommit), expireIn).commit();
  }
  const commit = set(kv.atomic(), pieces.slice(0, piecesPerCommit), expireIn).check({
    key,
    versionstamp: seen.versionstamp,
  });
  commit.set(key, head, expiryOf(head.expires - Date.now()));
  for (const each of dropped) commit.delete(each);
  const done = await commit.commit();
  if (done.ok) return { head, versionstamp: done.versionstamp };
  for (const [each] of before) await kv.delete(each);
  return undefined;
}

function set(commit: Deno.AtomicOperation, pieces: readonly Piece[], expireIn: number): Deno.AtomicOperation {
  for (const [key, text] of pieces) commit.set(key, text, expiryOf(expireIn));
  return commit;
}

function expiryOf(expireIn: number): { expireIn?: number } {
  return expireIn < Infinity ? { expireIn: Math.max(1, expireIn) } : {}; // a counter may expire while it is added to
}

/** Reads entries of a session, whose pieces have the keys that begin with `all`. Pieces of appends that failed have no first piece. */
export async function readEntries(
  kv: Deno.Kv,
  id: string,
  all: Deno.KvKey,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<readonly NumberedJournalEntry[]> {
  if (last < first) return [];
  const before = kv.list({ start: all, end: [...all, first + 1] }, { reverse: true, limit: 1 });
  const [start = all] = await Array.fromAsync(before, ({ key }) => key.slice(0, 4));
  const pieces: PieceRow[] = [];
  let writer: Deno.KvKeyPart | undefined;
  for await (const { key, value: text } of kv.list<string>({ start, end: [...all, last + 1] })) {
    const [first, by, part] = key.slice(3);
    if (part === 0) writer = by;
    if (by === writer) pieces.push({ first: Number(first), part: Number(part), text });
  }
  return entriesOf(id, pieces, { first, last });
}

/** Deletes a head, and then its pieces. */
export async function forget(
  kv: Deno.Kv,
  key: Deno.KvKey,
  prefixOf: (record: string) => Deno.KvKey,
): Promise<void> {
  const { value, versionstamp } = await kv.get<Head>(key);
  if (!value) return;
  const { ok } = await kv.atomic().check({ key, versionstamp }).delete(key).commit();
  if (!ok) return await forget(kv, key, prefixOf); // it was replaced in between
  for await (const piece of kv.list({ prefix: prefixOf(value.record) })) await kv.delete(piece.key);
}
