/**
 * Keys that contain the owner.
 *
 * @module
 */
/**
 * Returns the key of a session or run of `owner`; without an owner, its id. Two owners can use the same id. JSON makes the key unambiguous, whatever characters
 * owner and id contain.
 */
export function ownedKey(owner: string | undefined, id: string): string {
  return owner === undefined ? id : JSON.stringify([owner, id]);
}
