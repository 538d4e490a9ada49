/**
 * Texts in pieces, for databases that limit the size of a value.
 *
 * @module
 */
import { UnreadableError } from "../core/store.ts";
import type { JournalEntry, NumberedJournalEntry } from "../core/journal.ts";

/** Splits `text` into pieces of at most `length` code units. No piece ends within a surrogate pair. */
export function piecesOf(text: string, length: number): string[] {
  const pieces: string[] = [];
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = at + length;
    if (isLow(text.charCodeAt(end))) end--;
    pieces.push(text.slice(at, end));
  }
  return pieces;
}

/** Whether a code unit is the second of a surrogate pair. */
function isLow(unit: number): boolean {
  return unit >= 0xDC00 && unit < 0xE000;
}

/** Joins the entries of one append: each is a line of JSON. */
export function textOfEntries(entries: readonly JournalEntry[]): string {
  return textOfLines(entries.map((entry) => JSON.stringify(entry)));
}

/** A piece of the entries, or of the event lines, of one append. */
export interface PieceRow {
  /** The number of the first of these entries or events. */
  readonly first: number;
  /** The index of the piece, from 0. */
  readonly part: number;
  readonly text: string;
}

/**
 * Returns the entries from `first` to `last` of their pieces, which are in order. There may be others before and behind. Throws an `UnreadableError` if one is missing, which
 * names the session `id`.
 */
export function entriesOf(
  id: string,
  pieces: readonly PieceRow[],
  { first, last }: { readonly first: number; readonly last: number },
): readonly NumberedJournalEntry[] {
  const entries: NumberedJournalEntry[] = [];
  for (const [at, text] of textsOf(pieces)) {
    for (const [index, line] of text.slice(0, -1).split("\n").entries()) {
      const number = at + index;
      if (number >= first && number <= last) entries.push([number, parsed(id, line)]);
    }
  }
  if (entries.length !== Math.max(last - first + 1, 0)) {
    throw new UnreadableError(`Cannot read session "${id}": an entry is missing`);
  }
  return entries;
}

/** Joins pieces to the texts of appends, by the numbers of their first entries or events. */
export function textsOf(pieces: readonly PieceRow[]): ReadonlyMap<number, string> {
  const texts = new Map<number, string>();
  for (const { first, text } of pieces) texts.set(first, (texts.get(first) ?? "") + text);
  return texts;
}

function parsed(id: string, line: string): JournalEntry {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new UnreadableError(`Cannot read session "${id}": an entry is no JSON`, { cause });
  }
}

/** Joins lines. Each ends with a line feed, also the last one. */
export function textOfLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** The number of characters of a page of events. A page ends with the first append, or in memory with the first event, that exceeds it. */
export const pageLength = 500_000;
