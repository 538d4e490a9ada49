/**
 * Values in Deno KV, as a head and pieces: the database accepts values of at most 64 KiB and commits of at most 800 KiB.
 *
 * @module
 */
import type { DeltaOptions } from "../journal_rows.ts";
import type { NumberedJournalEntry } from "../../core/journal.ts";
import { expectMethods } from "../../core/lib/options.ts";
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

/** Joins the texts of pieces. Returns nothing if one of them was deleted meanwhile. */
export async function join(kv: Deno.Kv, keys: readonly Deno.KvKey[]): Promise<string | undefined> {
  const texts: string[] = [];
  for (let at = 0; at < keys.length; at += 10) { // the most keys of one read
    for (const { value } of await kv.getMany<string[]>(keys.slice(at, at + 10))) {
      if (value === null) return undefined;
      texts.push(value);
    }
  }
  return texts.join("");
}

/** When a value expires, as Deno KV states it. */
interface Expiry {
  readonly expireIn?: number;
}

/**
 * Commits an operation, which sets a head, together with its pieces. Pieces that do not fit into the commit are stored before: without the head or the first one,
 * they do not count. Their keys are of this attempt alone, so they are deleted if it fails.
 */
export async function commitPieces(
  kv: Deno.Kv,
  operation: Deno.AtomicOperation,
  pieces: readonly Piece[],
  expiry: Expiry = {},
): Promise<Deno.KvCommitResult | Deno.KvCommitError> {
  const before = pieces.slice(piecesPerCommit);
  for (let at = 0; at < before.length; at += piecesPerCommit) {
    await setAll(kv.atomic(), before.slice(at, at + piecesPerCommit), expiry).commit();
  }
  const result = await setAll(operation, pieces.slice(0, piecesPerCommit), expiry).commit();
  if (!result.ok) { for (const [key] of before) await kv.delete(key); }
  return result;
}

function setAll(operation: Deno.AtomicOperation, pieces: readonly Piece[], expiry: Expiry): Deno.AtomicOperation {
  for (const [key, text] of pieces) operation.set(key, text, expiry);
  return operation;
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
