/**
 * Addresses: what may be fetched, and no more of it than is taken.
 *
 * @module
 */

const mostHops = 5;

/** The address that a URL says. Throws a `TypeError` where it may not be fetched. */
export function addressOf(url: string, insecure: boolean): string {
  if (!URL.canParse(url)) throw new TypeError(`Cannot load instructions from ${url}: it is no URL`);
  const { protocol, href } = new URL(url);
  if (protocol === "https:" || insecure && protocol === "http:") return href;
  throw new TypeError(`Cannot load instructions from ${url}: expected https:`);
}

/** An address without what may be secret in it. */
export function shown(address: string): string {
  const { origin, pathname } = new URL(address);
  return origin + pathname;
}

/** How an address is fetched. */
export interface FetchOptions {
  /** Where it may redirect to. */
  readonly allowed: ReadonlySet<string>;
  /** The most that is taken of it. */
  readonly maxBytes: number;
  /** Stops it. */
  readonly signal: AbortSignal;
}

/** The text at an address. */
export async function textAt(address: string, { allowed, maxBytes, signal }: FetchOptions): Promise<string> {
  let at = address;
  for (let hop = 0; hop <= mostHops; hop++) {
    const response = await fetch(at, { redirect: "manual", signal });
    if (response.ok) return await textOf(response, maxBytes);
    await response.body?.cancel();
    const to = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || to === null) {
      throw new Error(`Cannot fetch ${at}: it answers ${response.status}`);
    }
    at = new URL(to, at).href;
    if (!allowed.has(at)) throw new Error(`Cannot fetch ${address}: it redirects to ${at}, which is not in the list`);
  }
  throw new Error(`Cannot fetch ${address}: it redirects more than ${mostHops} times`);
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
