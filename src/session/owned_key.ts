/**
 * Ownership: keys that contain the owner, and sessions that belong to one.
 *
 * @module
 */
import type { SessionHead } from "../core/session.ts";

/**
 * Returns the key of a session or run of `owner`; without an owner, its id. Two owners can use the same id. JSON makes the key unambiguous, whatever characters
 * owner and id contain.
 */
export function ownedKey(owner: string | undefined, id: string): string {
  return owner === undefined ? id : JSON.stringify([owner, id]);
}

/** Returns the session if it belongs to `owner`. Without an owner, every session is returned. */
export function ifOwnedBy<S extends SessionHead>(owner: string | undefined, session: S | undefined): S | undefined {
  return owner === undefined || session?.owner === owner ? session : undefined;
}
