/**
 * Texts in pieces, for databases that bound the size of a value.
 *
 * @module
 */
import type { Session } from "../protocol/session.ts";

/** `text` in pieces of at most `length` characters. None ends within a character that takes two. */
export function piecesOf(text: string, length: number): string[] {
  const pieces: string[] = [];
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = Math.min(at + length, text.length);
    if (end < text.length && isHigh(text.charCodeAt(end - 1))) end--;
    pieces.push(text.slice(at, end));
  }
  return pieces;
}

/** Whether a code unit is the first of two. */
function isHigh(unit: number): boolean {
  return unit >= 0xD800 && unit < 0xDC00;
}

/** A session as a text that a longer transcript changes at its end only. Its version is kept beside it. */
export function textOfSession({ messages, version: _, ...rest }: Session): string {
  return JSON.stringify({ messages, ...rest });
}

/** The session that a text was made of. */
export function sessionOf(text: string, version: number): Session {
  return { ...JSON.parse(text), version };
}

/** Lines as one text that says where it ends. */
export function textOfLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** A piece of the lines of one addition. */
export interface LinesPiece {
  /** The number of the first of those lines. */
  readonly first: number;
  /** Which piece it is, from 0. */
  readonly part: number;
  readonly text: string;
}

/** Puts pieces of lines together again. */
export interface Gathering {
  /** Takes the next piece; gives false, and takes nothing, where there are enough for a page. */
  add(piece: LinesPiece): boolean;
  /** The lines, without a gap, and the number of the first. */
  lines(): { readonly first: number; readonly lines: readonly string[] };
}

/** The characters that are enough for a page. */
const enough = 500_000;

/**
 * Gathers the lines after `after` from pieces in their order. Where a piece is missing, because it has expired or because whoever wrote it
 * did not come to the end, what was gathered before counts as forgotten.
 */
export function gather(after: number): Gathering {
  let lines: string[] = [];
  let first = after + 1;
  let length = 0;
  let texts: string[] = [];
  let start = 0;

  /** Ends an addition. */
  function settle(): void {
    const text = texts.join("");
    texts = [];
    if (!text.endsWith("\n")) return;
    const all = text.slice(0, -1).split("\n").slice(Math.max(0, after + 1 - start));
    const number = Math.max(start, after + 1);
    if (number !== first + lines.length) {
      first = number;
      lines = [];
    }
    for (const line of all) lines.push(line);
    length += text.length;
  }

  return {
    add({ first, part, text }) {
      if (part === 0) {
        settle();
        if (length >= enough) return false;
        start = first;
        texts.push(text);
      } else if (part === texts.length && first === start) {
        texts.push(text);
      }
      return true;
    },
    lines() {
      settle();
      return { first, lines };
    },
  };
}
