/**
 * The expiry of entries, for databases that store it in a column.
 *
 * @module
 */

/** Milliseconds between two deletions of expired entries. */
export const sweepEvery = 60_000;

/** Returns when an entry that changes now expires; null for never. */
export function expiry(expireIn: number): number | null {
  return expireIn < Infinity ? Date.now() + expireIn : null;
}
