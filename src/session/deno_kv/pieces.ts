/**
 * The pieces of a session in Deno KV. They are kept until the session expires, and are written again if they would be deleted before it.
 *
 * @module
 */
import { type Piece, textsOf } from "./commit.ts";

/** A piece to which the head of a session refers. */
export interface KeptPiece {
  readonly name: string;
  /** The hash of its text. A piece with the same hash is not written again. */
  readonly hash: string;
  /** The time from which it lives on: when it was written, or the end of the lease if that was later, in milliseconds since 1970. */
  readonly at: number;
}

/** Whether a piece need not be written again for a session that is used until `usedUntil`. */
export function canReuse({ at }: KeptPiece, usedUntil: number, expireIn: number): boolean {
  return at >= usedUntil - expireIn;
}

/** Returns how long a piece is kept: two times `expireIn`, since a save may reuse a piece until it is `expireIn` old, and needs it for `expireIn` more. */
export function pieceLife(usedUntil: number, expireIn: number): number {
  return usedUntil - Date.now() + 2 * expireIn;
}

/**
 * Returns the pieces of a session that is used until `usedUntil`, with new ones to write and old ones to delete if they would be deleted before the session.
 * Returns nothing if one was deleted meanwhile.
 */
export async function keepPieces(
  kv: Deno.Kv,
  pieces: readonly KeptPiece[],
  { keyOf, usedUntil, expireIn }: {
    /** Returns the key of a piece. */
    readonly keyOf: (piece: KeptPiece) => Deno.KvKey;
    readonly usedUntil: number;
    readonly expireIn: number;
  },
) {
  if (pieces.every((piece) => canReuse(piece, usedUntil, expireIn))) return { pieces, added: [], dropped: [] };
  const dropped = pieces.map(keyOf);
  const texts = await textsOf(kv, dropped);
  const renewed = pieces.map((piece) => ({ ...piece, name: crypto.randomUUID(), at: usedUntil }));
  const added = renewed.map((piece, index): Piece => [keyOf(piece), texts?.[index] ?? ""]);
  return texts && { pieces: renewed, added, dropped };
}
