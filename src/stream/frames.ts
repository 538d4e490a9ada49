/**
 * Server-sent events as they come in.
 *
 * @module
 */

/**
 * The data of each frame of `body`: one array for every read, empty where nothing was complete. Names, ids and comments are left out. What follows the
 * last empty line is given too, at the end: whoever parses it sees whether it is whole.
 */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder();
  const take = splitter();
  for await (const bytes of body) yield take(decoder.decode(bytes, { stream: true }));
  yield take(`${decoder.decode()}\n\n`);
}

/** Cuts text into frames, however it comes in pieces. */
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
