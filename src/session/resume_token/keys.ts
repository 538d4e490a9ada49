/**
 * Secret keys, from which signatures and encryption derive theirs.
 *
 * @module
 */

/** A secret key with an id. */
export interface SecretKey {
  /** Letters, digits, `-` and `_`. The id is part of every signed or encrypted text, and readable in it. */
  readonly id: string;
  /** At least 32 bytes that cannot be guessed. The bytes of a string are its UTF-8. */
  readonly secret: string | Uint8Array;
}

/** A key whose secret is bytes. */
export interface Key {
  readonly id: string;
  readonly secret: Uint8Array<ArrayBuffer>;
}

/** Keys by id. */
export interface KeyRing {
  /** The key that signs and encrypts. */
  readonly first: Key;
  /** Returns a key. */
  get(id: string): Key | undefined;
}

/**
 * Checks and copies keys. Throws a `RangeError` if there is no key or if one is too short, and a `TypeError` for an id with other characters or an id that two
 * keys have.
 */
export function keyRing(keys: readonly SecretKey[]): KeyRing {
  const ring = new Map<string, Key>();
  for (const { id, secret } of keys) {
    const named = `Cannot use key "${id}"`;
    if (!/^[\w-]+$/.test(id)) throw new TypeError(`${named}: expected an id of letters, digits, - and _`);
    if (ring.has(id)) throw new TypeError(`${named}: another key has this id`);
    const bytes = typeof secret === "string" ? new TextEncoder().encode(secret) : new Uint8Array(secret);
    if (bytes.length < 32) throw new RangeError(`${named}: expected at least 32 bytes, got ${bytes.length}`);
    ring.set(id, { id, secret: bytes });
  }
  const [first] = ring.values();
  if (!first) throw new RangeError("Cannot sign or encrypt: expected at least one key");
  return { first, get: (id) => ring.get(id) };
}
