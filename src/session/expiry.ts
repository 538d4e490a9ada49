/**
 * The expiry of sessions and texts (`expireIn`): the time at which an entry expires, and how often a database deletes those that have expired.
 *
 * @module
 */

/** Milliseconds between two deletions of expired entries. */
const sweepEvery = 60_000;

/** Returns a function that returns true if expired entries are to be deleted now: once a minute. */
export function sweepTimer(): () => boolean {
  let due = 0;
  return () => {
    const now = Date.now();
    if (now < due) return false;
    due = now + sweepEvery;
    return true;
  };
}

/** Returns when an entry that changes now expires; null for never. */
export function expiry(expireIn: number): number | null {
  return expireIn < Infinity ? Math.ceil(Date.now() + expireIn) : null; // columns contain whole numbers
}
