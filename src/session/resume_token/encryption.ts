/**
 * Encrypted texts, which only the holder of a key can read and make: AES-256-GCM by WebCrypto, with a key that HKDF derives from the secret.
 *
 * @module
 */
import { fromBase64url, toBase64url } from "./base64url.ts";
import { type Key, keyRing, type SecretKey } from "./keys.ts";
import type { Verified } from "./signature.ts";

/** Encrypts texts, and decrypts them. */
export interface Encryption {
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
