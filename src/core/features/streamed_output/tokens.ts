/**
 * The tokens of JSON: marks, scalars and escapes.
 *
 * @module
 */
import type { Json } from "../../../protocol/part.ts";

const escapes: { readonly [letter: string]: string } = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Returns the position of a character, or the end of the text. */
export function indexOf(text: string, character: string, at: number): number {
  const index = text.indexOf(character, at);
  return index < 0 ? text.length : index;
}

/** Whether a character belongs to a number, a boolean or null: a digit, a small letter, `E`, or one of `+-.`. */
export function isScalar(char: number): boolean {
  return (char >= 48 && char <= 57) || (char >= 97 && char <= 122) || char === 69 ||
    (char >= 43 && char <= 46 && char !== 44);
}

/** Parses a number, a boolean or null. Undefined for any other text. */
export function scalarOf(token: string): Json | undefined {
  if (token === "true" || token === "false") return token === "true";
  if (token === "null") return null;
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(token) ? Number(token) : undefined;
}

/** A decoded escape, and the number of characters that it takes. */
export interface Escape {
  readonly text: string;
  readonly length: number;
}

/** Decodes the escape at a position. The escapes of a surrogate pair are read together. */
export function readEscape(text: string, at: number): Escape | "incomplete" | "wrong" {
  const letter = text.charAt(at + 1);
  const isHigh = /^u[dD][89abAB]/.test(text.slice(at + 1, at + 4));
  const length = letter === "u" ? isHigh ? 12 : 6 : 2;
  if (text.length - at < length) return "incomplete";
  if (letter !== "u") return { text: escapes[letter] ?? letter, length };
  const [digits = "", first = "", second] =
    /^\\u([\da-fA-F]{4})(?:\\u([\da-fA-F]{4}))?/.exec(text.slice(at, at + length)) ?? [];
  if (digits === "") return "wrong";
  const units = [first, second ?? []].flat().map((hex) => parseInt(hex, 16));
  return { text: String.fromCharCode(...units), length: digits.length };
}
