/**
 * Functions on texts.
 *
 * @module
 */

/** Escapes the characters that a terminal would execute or hide, and line breaks, except for `kept`. */
export function visible(text: string, kept = ""): string {
  return text.replace(/\p{C}/gu, (char) => char === kept ? char : `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

/** Returns, for each prefix of a text, the length of its longest proper prefix that is also its suffix (Knuth, Morris, Pratt 1977). */
export function bordersOf(text: string): Uint32Array {
  const borders = new Uint32Array(text.length);
  for (let at = 1, matched = 0; at < text.length; at++) {
    while (matched > 0 && text[matched] !== text[at]) matched = borders[matched - 1] ?? 0;
    if (text[matched] === text[at]) matched++;
    borders[at] = matched;
  }
  return borders;
}

/** Compiles a pattern in which `*` is a wildcard. Each piece between two `*` is searched for once, so matching never backtracks. */
export function wildcard(pattern: string): (text: string) => boolean {
  const [start = "", ...pieces] = pattern.split(/\*+/);
  const end = pieces.pop();
  if (end === undefined) return (text) => text === pattern;
  return (text) => {
    if (!text.startsWith(start)) return false;
    let at = start.length;
    for (const piece of pieces) {
      const found = text.indexOf(piece, at);
      if (found < 0) return false;
      at = found + piece.length;
    }
    return text.length - end.length >= at && text.endsWith(end);
  };
}
