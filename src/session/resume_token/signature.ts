/**
 * Signatures: texts that can be read by anybody and made by nobody else. HMAC-SHA-256 by WebCrypto, which compares in constant time.
 *
 * @module
 */

/** A key, and the id by which what it signed names it. */
export interface SigningKey {
  /** Letters, digits, `-` and `_`, for all to see. */
  readonly id: string;
  /** At least 32 bytes that cannot be guessed; of a text, its UTF-8. */
  readonly secret: string | Uint8Array;
}

/** What a signed text holds, or why that is not said. */
export type Verified = { readonly content: string } | { readonly problem: "forged" | "unknown-key" };

/** Signs texts, and reads what was signed. */
export interface Signatures {
  /** Signs a text, with the first key. What comes of it may stand in URLs and headers. */
  sign(content: string): Promise<string>;
  /** Reads what any of the keys has signed. */
  verify(text: string): Promise<Verified>;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Signs for one `purpose`: what the same key signed for another does not count.
 *
 * Throws a `RangeError` where there is no key and for one that is too short, and a `TypeError` for ids that no text can name.
 */
export function signatures(purpose: string, keys: readonly SigningKey[]): Signatures {
  const secrets = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const { id, secret } of keys) {
    if (!/^[\w-]+$/.test(id)) {
      throw new TypeError(`Cannot sign with key "${id}": its id may have letters, digits, - and _`);
    }
    if (secrets.has(id)) throw new TypeError(`Cannot sign with key "${id}": there are two of that id`);
    const bytes = typeof secret === "string" ? encoder.encode(secret) : new Uint8Array(secret);
    if (bytes.length < 32) throw new RangeError(`Cannot sign with key "${id}": it has less than 32 bytes`);
    secrets.set(id, bytes);
  }
  const [first] = secrets;
  if (!first) throw new RangeError("Cannot sign: there is no key");
  const [signer, signing] = first;
  const signedBytes = (named: string) => encoder.encode(`${purpose}:${named}`);

  return {
    async sign(content) {
      const named = `${signer}.${toBase64url(encoder.encode(content))}`;
      const signature = await crypto.subtle.sign("HMAC", await keyOf(signing, "sign"), signedBytes(named));
      return `${named}.${toBase64url(new Uint8Array(signature))}`;
    },
    async verify(text) {
      const [, named, id = "", content = "", last = ""] = /^(([\w-]+)\.([\w-]+))\.([\w-]+)$/.exec(text) ?? [];
      const secret = secrets.get(id);
      if (named && !secret) return { problem: "unknown-key" };
      const signature = fromBase64url(last);
      const isSigned = named && secret && signature &&
        await crypto.subtle.verify("HMAC", await keyOf(secret, "verify"), signature, signedBytes(named));
      return isSigned ? { content: decoder.decode(fromBase64url(content)) } : { problem: "forged" };
    },
  };
}

function keyOf(secret: Uint8Array<ArrayBuffer>, usage: "sign" | "verify"): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, [usage]);
}

/** Bytes in the alphabet of URLs, without padding (RFC 4648, section 5). */
function toBase64url(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The bytes of a text; nothing where it is not what `toBase64url()` makes of them: its last character may hold bits of no byte. */
function fromBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 4 === 1) return undefined;
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return toBase64url(bytes) === text ? bytes : undefined;
}
