/**
 * A parser for server-sent events.
 *
 * @module
 */

/**
 * Returns the data of each frame of `body`: one array for every read, which is empty if the read completed no frame. Names, ids and comments are dropped. Lines
 * end with a line feed, also after a carriage return. Text after the last empty line is returned as a last frame, which may be incomplete.
 */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  const decoder = new TextDecoder();
  const take = splitter();
  for await (const bytes of body) yield take(decoder.decode(bytes, { stream: true }));
  yield take(`${decoder.decode()}\n\n`);
}

/** Returns a function that splits text into frames, wherever the text is cut. */
function splitter(): (text: string) => readonly string[] {
  /** The unfinished line in pieces: it may be an image of megabytes, which is joined once. */
  let pieces: string[] = [];
  let data: string | undefined;

  return (text) => {
    const complete: string[] = [];
    if (!text.includes("\n")) {
      pieces.push(text);
      return complete;
    }
    const lines = pieces.join("") + text;
    let start = 0;
    for (let end = lines.indexOf("\n"); end >= 0; end = lines.indexOf("\n", start)) {
      const stop = end > start && lines[end - 1] === "\r" ? end - 1 : end;
      if (stop === start) {
        if (data !== undefined) complete.push(data);
        data = undefined;
      } else if (lines.startsWith("data:", start)) {
        const value = lines.slice(start + (lines[start + 5] === " " ? 6 : 5), stop);
        data = data === undefined ? value : `${data}\n${value}`;
      }
      start = end + 1;
    }
    pieces = [lines.slice(start)];
    return complete;
  };
}
