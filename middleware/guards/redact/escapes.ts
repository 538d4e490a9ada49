/**
 * Decodes the escapes of JSON strings, and maps places in the decoded text to the written text and back.
 *
 * @module
 */

/** A decoded text. */
export interface Decoded {
  /** The text. An escape that is incomplete at the end is copied as written. */
  readonly text: string;
  /** The index in the written text at which an incomplete escape begins; else its length. */
  readonly open: number;
  /** Returns the index in the written text of a decoded character. */
  toWritten(index: number): number;
  /** Returns the index of the last decoded character that begins at or before an index in the written text. */
  before(written: number): number;
  /** Returns the index of the first decoded character that begins at or after an index in the written text. */
  after(written: number): number;
}

/** An escape, a backslash that begins none, or other text. Does not match a backslash that may begin an escape once more text follows. */
const piece = /\\u[\dA-Fa-f]{4}|\\["\\/bfnrt]|\\(?!(?:u[\dA-Fa-f]{0,3})?$)|[^\\]+/gy;

const letters: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

function decodeEscape(escape: string): string {
  const letter = escape.charAt(1);
  return letter === "u" ? String.fromCharCode(parseInt(escape.slice(2), 16)) : letters[letter] ?? letter;
}

/** Decodes the escapes of a text; returns `undefined` if it has no backslash. */
export function decodeEscapes(written: string): Decoded | undefined {
  if (!written.includes("\\")) return undefined;
  const writtenIndexes: number[] = [];
  const decodedIndexes: number[] = [];
  const decoded: string[] = [];
  let length = 0;
  let open = 0;

  function add(characters: string, taken: number): void {
    for (let each = 0; each < taken; each++) decodedIndexes.push(length + Math.min(each, characters.length - 1));
    for (let each = 0; each < characters.length; each++) writtenIndexes.push(open + each);
    decoded.push(characters);
    length += characters.length;
    open += taken;
  }

  for (const [taken] of written.matchAll(piece)) {
    add(taken.length > 1 && taken.startsWith("\\") ? decodeEscape(taken) : taken, taken.length);
  }
  const complete = open;
  add(written.slice(open), written.length - open);
  const toWritten = (index: number) => writtenIndexes[index] ?? written.length;
  const before = (index: number) => decodedIndexes[index] ?? length;
  return {
    text: decoded.join(""),
    open: complete,
    toWritten,
    before,
    after: (index) => before(index) + (toWritten(before(index)) >= index ? 0 : 1),
  };
}
