/**
 * Text for terminals and logs.
 *
 * @module
 */

/** Escapes the characters that a terminal would execute or hide, and line breaks, except for `kept`. */
export function visible(text: string, kept = ""): string {
  return text.replace(/\p{C}/gu, (char) => char === kept ? char : `\\u{${char.codePointAt(0)?.toString(16)}}`);
}
