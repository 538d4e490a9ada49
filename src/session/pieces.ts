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

/** Joins the entries of one save: each is a line of JSON. */
export function textOfEntries(entries: readonly JournalEntry[]): string {
  return textOfLines(entries.map((entry) => JSON.stringify(entry)));
}

/** A piece of the entries of one save. */
export interface EntriesPiece {
  /** The number of the first of these entries. */
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
  pieces: readonly EntriesPiece[],
  { first, last }: { readonly first: number; readonly last: number },
): readonly NumberedJournalEntry[] {
  const texts = new Map<number, string>();
  for (const { first, text } of pieces) texts.set(first, (texts.get(first) ?? "") + text);
  const entries: NumberedJournalEntry[] = [];
  for (const [at, text] of texts) {
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

function parsed(id: string, line: string): JournalEntry {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new UnreadableError(`Cannot read session "${id}": an entry is no JSON`, { cause });
  }
}

/** Joins lines. Each line ends with a line feed, so that a missing piece is detected. */
export function textOfLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("");
}

/** A piece of the event lines of one append. */
export interface LinesPiece {
  /** The number of the first event of the addition. */
  readonly first: number;
  /** The index of the piece, from 0. */
  readonly part: number;
  readonly text: string;
}

/** Joins pieces to lines. */
interface LineCollector {
  /** Adds the next piece. Returns false, and adds nothing, if the page is full. */
  add(piece: LinesPiece): boolean;
  /** Returns the lines, without a gap, and the number of the first. */
  lines(): { readonly first: number; readonly lines: readonly string[] };
}

/** The number of characters of a page of events. A page ends with the first append, or in memory with the first event, that exceeds it. */
export const pageLength = 500_000;

/**
 * Collects the lines after `after` from pieces in their order. If a piece is missing, because it has expired or because its writer failed, the lines before it
 * count as deleted.
 */
export function collectLines(after: number): LineCollector {
  const additions: { readonly first: number; readonly texts: string[] }[] = [];
  /** The number of characters of the additions before the last one. Those that lack a piece do not count: a page of them alone would look like the end. */
  let length = 0;

  return {
    add({ first, part, text }) {
      const last = additions.at(-1);
      if (part > 0) {
        if (last?.first === first && last.texts.length === part) last.texts.push(text);
        return true;
      }
      if (last && isWhole(last.texts)) length = last.texts.reduce((sum, text) => sum + text.length, length);
      if (length >= pageLength) return false;
      additions.push({ first, texts: [text] });
      return true;
    },
    lines() {
      let first = after + 1;
      let lines: string[] = [];
      for (const addition of additions) {
        if (!isWhole(addition.texts)) continue;
        const firstNumber = Math.max(addition.first, after + 1);
        if (firstNumber !== first + lines.length) [first, lines] = [firstNumber, []];
        const text = addition.texts.join("");
        for (const line of text.slice(0, -1).split("\n").slice(firstNumber - addition.first)) lines.push(line);
      }
      return { first, lines };
    },
  };
}

/** Whether the pieces of an addition end with a line. */
function isWhole(texts: readonly string[]): boolean {
  return texts.at(-1)?.endsWith("\n") === true;
}
