/**
 * Bodies of responses of hooks behind a URL.
 *
 * @module
 */

/** Reads the text of a response. Throws a `RangeError` if it has more than `most` bytes. */
export async function readBody({ body }: Response, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let size = 0;
  let text = "";
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > most) throw new RangeError(`Cannot read the answer of the hook: it has more than ${most} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
