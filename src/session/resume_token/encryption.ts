/**
 * Secret keys, and the signed and encrypted texts that are made with them.
 *
 * @module
 */

// Base64 in the alphabet of URLs, without padding (RFC 4648, section 5).

/** Encodes bytes. */
function toBase64url(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Decodes a text. Returns nothing for a text that `toBase64url()` does not make: the last character can contain bits of no byte. */
function fromBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]*$/.test(text) || text.length % 4 === 1) return undefined;
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return toBase64url(bytes) === text ? bytes : undefined;
}

// Secret keys, from which signatures and encryption derive theirs.

/** A secret key with an id. */
export interface SecretKey {
  /** Letters, digits, `-` and `_`. The id is part of every signed or encrypted text, and readable in it. */
  readonly id: string;
  /** At least 32 bytes that cannot be guessed. The bytes of a string are its UTF-8. */
  readonly secret: string | Uint8Array;
}

/** A key whose secret is bytes. */
interface Key {
  readonly id: string;
  readonly secret: Uint8Array<ArrayBuffer>;
}

/** Keys by id. */
interface KeyRing {
  /** The key that signs and encrypts. */
  readonly first: Key;
  /** Returns a key. */
  get(id: string): Key | undefined;
}

/**
 * Checks and copies keys. Throws a `RangeError` if there is no key or if one is too short, and a `TypeError` for an id with other characters or an id that two
 * keys have.
 */
function keyRing(keys: readonly SecretKey[]): KeyRing {
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

// Signed texts: every reader can read them, only the holder of a key can make them: HMAC-SHA-256 by WebCrypto, which compares in constant time.

/** The content of a signed or encrypted text, or the reason why it is not accepted. */
type Verified = { readonly content: string } | { readonly problem: "forged" | "unknown-key" };

/** Signs texts, and verifies them. */
interface Signatures {
  /** Signs a text with the first key. The result is safe in URLs and headers. */
  sign(content: string): Promise<string>;
  /** Verifies a text that one of the keys has signed. */
  verify(text: string): Promise<Verified>;
}

const encoder = /* @__PURE__ */ new TextEncoder();

/** Signs texts for one `purpose`. A signature that the same key made for another purpose is not accepted. Throws as `keyRing()` does. */
export function signatures(purpose: string, keys: readonly SecretKey[]): Signatures {
  const ring = keyRing(keys);
  const signedBytes = (named: string) => encoder.encode(`${purpose}:${named}`);

  function hmacKey({ secret }: Key, usage: "sign" | "verify"): Promise<CryptoKey> {
    return crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, [usage]);
  }

  return {
    async sign(content) {
      const named = `${ring.first.id}.${toBase64url(encoder.encode(content))}`;
      const signature = await crypto.subtle.sign("HMAC", await hmacKey(ring.first, "sign"), signedBytes(named));
      return `${named}.${toBase64url(new Uint8Array(signature))}`;
    },
    async verify(text) {
      const [, named, id = "", content = "", last = ""] = /^(([\w-]+)\.([\w-]+))\.([\w-]+)$/.exec(text) ?? [];
      if (!named) return { problem: "forged" };
      const key = ring.get(id);
      if (!key) return { problem: "unknown-key" };
      const signature = fromBase64url(last);
      const isSigned = signature &&
        await crypto.subtle.verify("HMAC", await hmacKey(key, "verify"), signature, signedBytes(named));
      return isSigned ? { content: new TextDecoder().decode(fromBase64url(content)) } : { problem: "forged" };
    },
  };
}

// Encrypted texts, which only the holder of a key can read and make: AES-256-GCM by WebCrypto, with a key that HKDF derives from the secret.

/** Encrypts texts, and decrypts them. */
interface Encryption {
  /** Encrypts a text with the first key. The result is safe in URLs and headers. */
  encrypt(content: string): Promise<string>;
  /** Decrypts a text that one of the keys has encrypted. */
  decrypt(text: string): Promise<Verified>;
}

/** The bytes of an initialization vector, which is new for each text. */
const ivLength = 12;

/** Encrypts texts for one `purpose`. A text that the same key encrypted for another purpose is not accepted. Throws as `keyRing()` does. */
export function encryption(purpose: string, keys: readonly SecretKey[]): Encryption {
  const ring = keyRing(keys);
  const info = new TextEncoder().encode(purpose);
  const derived = new Map<string, CryptoKey>();

  async function aesKey({ id, secret }: Key): Promise<CryptoKey> {
    const known = derived.get(id);
    if (known) return known;
    const base = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveKey"]);
    const hkdf = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
    const key = await crypto.subtle.deriveKey(hkdf, base, { name: "AES-GCM", length: 256 }, false, [
      "encrypt",
      "decrypt",
    ]);
    derived.set(id, key);
    return key;
  }

  /** The id of the key is authenticated with the content. */
  const paramsOf = (id: string, iv: Uint8Array<ArrayBuffer>) => {
    return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(id) };
  };

  return {
    async encrypt(content) {
      const { id } = ring.first;
      const iv = crypto.getRandomValues(new Uint8Array(ivLength));
      const encrypted = await crypto.subtle.encrypt(
        paramsOf(id, iv),
        await aesKey(ring.first),
        new TextEncoder().encode(content),
      );
      const bytes = new Uint8Array(ivLength + encrypted.byteLength);
      bytes.set(iv);
      bytes.set(new Uint8Array(encrypted), ivLength);
      return `${id}.${toBase64url(bytes)}`;
    },
    async decrypt(text) {
      const [, id, encrypted = ""] = /^([\w-]+)\.([\w-]+)$/.exec(text) ?? [];
      if (id === undefined) return { problem: "forged" };
      const key = ring.get(id);
      if (!key) return { problem: "unknown-key" };
      const bytes = fromBase64url(encrypted);
      if (!bytes) return { problem: "forged" };
      try {
        const params = paramsOf(id, bytes.slice(0, ivLength));
        const content = await crypto.subtle.decrypt(params, await aesKey(key), bytes.slice(ivLength));
        return { content: new TextDecoder().decode(content) };
      } catch {
        return { problem: "forged" }; // WebCrypto does not tell why
      }
    },
  };
}
