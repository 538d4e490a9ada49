/**
 * A parser for server-sent events.
 *
 * @module
 */

/** The data of a frame, or that of a frame whose event is named `error`. */
export type Frame = string | { readonly error: string };

/**
 * Returns the frames of `body`: one array for every read, which is empty if the read completed no frame. Other names, ids and comments are dropped. Lines end
 * with a line feed, a carriage return, or both. Text after the last empty line is returned as a last frame, which may be incomplete.
 */
export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<readonly Frame[]> {
  const decoder = new TextDecoder();
  const take = splitter();
  for await (const bytes of body) yield take(decoder.decode(bytes, { stream: true }));
  yield take(`${decoder.decode()}\n\n`);
}

/** Returns a function that splits text into frames, wherever the text is cut. */
function splitter(): (text: string) => readonly Frame[] {
  /** The unfinished line in pieces: it may be an image of megabytes, which is joined once. */
  let pieces: string[] = [];
  let data: string | undefined;
  let isError = false;
  /** Whether the last text ended with a carriage return, which a line feed may follow. */
  let endsWithReturn = false;

  return (given) => {
    const complete: Frame[] = [];
    if (given === "") return complete;
    let text = endsWithReturn && given.startsWith("\n") ? given.slice(1) : given;
    endsWithReturn = given.endsWith("\r");
    if (text.includes("\r")) text = text.replace(/\r\n?/g, "\n");
    if (!text.includes("\n")) {
      pieces.push(text);
      return complete;
    }
    const lines = pieces.join("") + text;
    let start = 0;
    for (let end = lines.indexOf("\n"); end >= 0; end = lines.indexOf("\n", start)) {
      if (end === start) {
        if (isError) complete.push({ error: data ?? "" });
        else if (data !== undefined) complete.push(data);
        data = undefined;
        isError = false;
      } else if (lines.startsWith("data:", start)) {
        const value = lines.slice(start + (lines[start + 5] === " " ? 6 : 5), end);
        data = data === undefined ? value : `${data}\n${value}`;
      } else if (lines.startsWith("event:", start)) {
        isError = lines.slice(start + 6, end).trim() === "error";
      }
      start = end + 1;
    }
    pieces = [lines.slice(start)];
    return complete;
  };
}
