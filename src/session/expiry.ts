/**
 * The expiry of entries, for databases that store it in a column.
 *
 * @module
 */

/** Milliseconds between two deletions of expired entries. */
export const sweepEvery = 60_000;

/**
 * Returns when an entry that changes now expires; null for never. For a session with a lease, the time counts from the end of the lease, since its run is
 * active until then.
 */
export function expiry(expireIn: number, leaseEnd: number | null = null): number | null {
  return expireIn < Infinity ? usedUntil(leaseEnd) + expireIn : null;
}

/** Returns the time from which `expireIn` counts: the end of the lease if that is later than now. */
export function usedUntil(leaseEnd: number | null): number {
  return Math.max(Date.now(), leaseEnd ?? 0);
}
