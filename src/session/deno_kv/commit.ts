/**
 * What is kept in Deno KV: a head, and beneath it pieces, since the database takes values of 64 KiB and commits of 800 KiB at most.
 *
 * @module
 */

/** Where in the database, and for how long. */
export interface DenoKvOptions {
  /** The first part of every key. Default: "jizai". */
  readonly prefix?: string;
  /** Milliseconds after its last change that something is forgotten. Default: never. */
  readonly expireIn?: number;
}

/** What says which pieces there are. */
export interface Head {
  /** What the keys of its pieces begin with: no other head's ever do. */
  readonly record: string;
  /** In milliseconds since 1970. */
  readonly expires: number;
}

/** A head as it was seen, to be replaced only while it is so. */
export interface Seen<H extends Head> {
  readonly head: H | undefined;
  readonly versionstamp: string | null;
}

/** A text of at most `pieceLength`, and where it is kept. */
export type Piece = readonly [key: Deno.KvKey, text: string];

/** The most characters of a piece, of two bytes each. */
export const pieceLength = 30_000;

/** How many pieces one commit takes, beside a head. */
const together = 10;

/** Whether a head counts still. The database itself is late to forget what has expired. */
export function isLive(head: Head): boolean {
  return head.expires > Date.now();
}

/** Sees a head, if there is a live one. */
export async function see<H extends Head>(kv: Deno.Kv, key: Deno.KvKey): Promise<Seen<H>> {
  const { value, versionstamp } = await kv.get<H>(key);
  return { head: value && isLive(value) ? value : undefined, versionstamp };
}

/**
 * Sets pieces, and in the same step the head that makes them count; not if it is another than the one that was seen.
 * Gives the new one as seen, or nothing. The pieces are kept for `expireIn` milliseconds at least.
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
  const before = pieces.slice(together); // than one commit takes is set before: it does not count yet
  for (let at = 0; at < before.length; at += together) {
    await set(kv.atomic(), before.slice(at, at + together), expireIn).commit();
  }
  const commit = set(kv.atomic(), pieces.slice(0, together), expireIn).check({ key, versionstamp: seen.versionstamp });
  commit.set(key, head, lasting(head.expires - Date.now()));
  for (const each of dropped) commit.delete(each);
  const done = await commit.commit();
  if (done.ok) return { head, versionstamp: done.versionstamp };
  for (const [each] of before) await kv.delete(each);
  return undefined;
}

function set(commit: Deno.AtomicOperation, pieces: readonly Piece[], expireIn: number): Deno.AtomicOperation {
  for (const [key, text] of pieces) commit.set(key, text, lasting(expireIn));
  return commit;
}

function lasting(expireIn: number): { expireIn?: number } {
  return expireIn < Infinity ? { expireIn } : {};
}

/** Deletes a head, and then what is beneath it, which nobody finds any more. */
export async function forget(kv: Deno.Kv, key: Deno.KvKey, beneath: (record: string) => Deno.KvKey): Promise<void> {
  const { value, versionstamp } = await kv.get<Head>(key);
  if (!value) return;
  const { ok } = await kv.atomic().check({ key, versionstamp }).delete(key).commit();
  if (!ok) return await forget(kv, key, beneath); // it was replaced in between
  for await (const piece of kv.list({ prefix: beneath(value.record) })) await kv.delete(piece.key);
}
