/**
 * Fetches instructions from allowed URLs.
 *
 * @module
 */

const maxRedirects = 5;

/** Normalizes a URL. Throws a `TypeError` if it may not be fetched. */
export function addressOf(url: string, insecure: boolean): string {
  if (!URL.canParse(url)) {
    throw new TypeError(`Cannot load instructions from ${url}: it is not a URL; expected an https URL`);
  }
  const { protocol, href } = new URL(url);
  if (protocol === "https:" || insecure && protocol === "http:") return href;
  throw new TypeError(`Cannot load instructions from ${url}: its protocol is ${protocol}; expected https:`);
}

/** Returns a URL without its parts that may contain secrets. */
export function shown(address: string): string {
  const { origin, pathname } = new URL(address);
  return origin + pathname;
}

/** Options of a fetch. */
export interface FetchOptions {
  /** URLs to which it may be redirected. */
  readonly allowed: ReadonlySet<string>;
  /** Largest body in bytes. */
  readonly maxBytes: number;
  /** Aborts the fetch. */
  readonly signal: AbortSignal;
}

/** Fetches the text at a URL. */
export async function textAt(address: string, { allowed, maxBytes, signal }: FetchOptions): Promise<string> {
  let at = address;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const response = await fetch(at, { redirect: "manual", signal });
    if (response.ok) return await textOf(response, maxBytes);
    await response.body?.cancel();
    const to = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || to === null) {
      throw new Error(`Cannot fetch ${at}: its status is ${response.status}`);
    }
    at = new URL(to, at).href;
    if (!allowed.has(at)) throw new Error(`Cannot fetch ${address}: it redirects to ${at}, which is not in \`urls\``);
  }
  throw new Error(`Cannot fetch ${address}: it redirects more than ${maxRedirects} times`);
}

async function textOf({ body, url }: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let size = 0;
  let text = "";
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw new RangeError(`Cannot fetch ${url}: it has more than ${maxBytes} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
