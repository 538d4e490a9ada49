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
