/**
 * Signed texts: every reader can read them, only the holder of a key can make them: HMAC-SHA-256 by WebCrypto, which compares in constant time.
 *
 * @module
 */
import { fromBase64url, toBase64url } from "./base64url.ts";
import { type Key, keyRing, type SecretKey } from "./keys.ts";

/** The content of a signed or encrypted text, or the reason why it is not accepted. */
export type Verified = { readonly content: string } | { readonly problem: "forged" | "unknown-key" };

/** Signs texts, and verifies them. */
export interface Signatures {
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
