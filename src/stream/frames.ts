/**
 * A parser for server-sent events.
 *
 * @module
 */

/**
 * Returns the data of each frame of `body`: one array for every read, which is empty if the read completed no frame. Names, ids and comments are dropped. Text
 * after the last empty line is returned as a last frame, which may be incomplete.
 */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder();
  const take = splitter();
  for await (const bytes of body) yield take(decoder.decode(bytes, { stream: true }));
  yield take(`${decoder.decode()}\n\n`);
}

/** Returns a function that splits text into frames, wherever the text is cut. */
function splitter(): (text: string) => readonly string[] {
  let rest = "";
  let data: string | undefined;

  return (text) => {
    const complete: string[] = [];
    rest += text;
    let start = 0;
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n", start)) {
      const stop = end > start && rest[end - 1] === "\r" ? end - 1 : end;
      if (stop === start) {
        if (data !== undefined) complete.push(data);
        data = undefined;
      } else if (rest.startsWith("data:", start)) {
        const value = rest.slice(start + (rest[start + 5] === " " ? 6 : 5), stop);
        data = data === undefined ? value : `${data}\n${value}`;
      }
      start = end + 1;
    }
    rest = rest.slice(start);
    return complete;
  };
}
