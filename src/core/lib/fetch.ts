/**
 * Reads responses whose size is bounded, and fetches URLs whose redirects are checked.
 *
 * @module
 */

/** The bound of a response. */
export interface ReadBounds {
  /** The most bytes. */
  readonly maxBytes: number;
  /** The failed operation, for the error. */
  readonly operation: string;
}

/** Reads the bytes of a response. Throws a `RangeError` if it has more than `maxBytes` bytes. */
export async function readBytes(
  { body }: Response,
  { maxBytes, operation }: ReadBounds,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw new RangeError(`${operation}: it has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

/** Options of `readText()`. */
export interface ReadOptions extends ReadBounds {
  /** Whether bytes that are not UTF-8 are an error. Default: false, and they are replaced. */
  readonly fatal?: boolean;
}

/** Reads the text of a response. Throws a `RangeError` if it has more than `maxBytes` bytes. */
export async function readText(response: Response, { fatal = false, ...bounds }: ReadOptions): Promise<string> {
  return new TextDecoder("utf-8", { fatal }).decode(await readBytes(response, bounds));
}

const maxRedirects = 5;

/** Options of `fetchBytes()`. */
export interface FetchOptions {
  /** Returns the reason why a redirect to a URL is not followed; undefined if it is. */
  readonly refuses: (url: string) => string | undefined;
  /** Largest response in bytes. */
  readonly maxBytes: number;
  /** Aborts the fetch. */
  readonly signal: AbortSignal;
}

/** Fetches the bytes at a URL. Throws an error for a status other than 2xx, for a redirect that is refused, and for more than five redirects. */
export async function fetchBytes(
  url: string,
  { refuses, maxBytes, signal }: FetchOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  let at = url;
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const response = await fetch(at, { redirect: "manual", signal });
    if (response.ok) return await readBytes(response, { maxBytes, operation: `Cannot fetch ${response.url}` });
    await response.body?.cancel();
    const to = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || to === null) {
      throw new Error(`Cannot fetch ${at}: its status is ${response.status}`);
    }
    at = new URL(to, at).href;
    const refusal = refuses(at);
    if (refusal !== undefined) throw new Error(`Cannot fetch ${url}: it redirects to ${at}, ${refusal}`);
  }
  throw new Error(`Cannot fetch ${url}: it redirects more than ${maxRedirects} times`);
}
