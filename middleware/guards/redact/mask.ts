/**
 * Finds secrets in a text, and the beginnings of secrets at its end.
 *
 * @module
 */
import { bordersOf } from "../../../src/core/kit.ts";

// Decodes the escapes of JSON strings, and maps places in the decoded text to the written text and back.

/** An escape, a backslash that begins none, or other text. Does not match a backslash that may begin an escape once more text follows. */
const piece = /\\u[\dA-Fa-f]{4}|\\["\\/bfnrt]|\\(?!(?:u[\dA-Fa-f]{0,3})?$)|[^\\]+/gy;

const letters: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

function decodeEscape(escape: string): string {
  const letter = escape.charAt(1);
  return letter === "u" ? String.fromCharCode(parseInt(escape.slice(2), 16)) : letters[letter] ?? letter;
}

/** Decodes the escapes of a text; returns `undefined` if it has no backslash. */
function decodeEscapes(written: string) {
  if (!written.includes("\\")) return undefined;
  const writtenIndexes: number[] = [];
  const decodedIndexes: number[] = [];
  const decoded: string[] = [];
  let length = 0;
  let writtenLength = 0;

  function add(characters: string, writtenCount: number): void {
    for (let each = 0; each < writtenCount; each++) decodedIndexes.push(length + Math.min(each, characters.length - 1));
    for (let each = 0; each < characters.length; each++) writtenIndexes.push(writtenLength + each);
    decoded.push(characters);
    length += characters.length;
    writtenLength += writtenCount;
  }

  for (const [match] of written.matchAll(piece)) {
    add(match.length > 1 && match.startsWith("\\") ? decodeEscape(match) : match, match.length);
  }
  const complete = writtenLength;
  add(written.slice(writtenLength), written.length - writtenLength);
  const toWritten = (index: number) => writtenIndexes[index] ?? written.length;
  const before = (index: number) => decodedIndexes[index] ?? length;
  return {
    /** The decoded text. An escape that is incomplete at the end is copied as written. */
    text: decoded.join(""),
    /** The index in the written text at which an incomplete escape begins; else its length. */
    writtenLength: complete,
    /** Returns the index in the written text of a decoded character. */
    toWritten,
    /** Returns the index of the last decoded character that begins at or before an index in the written text. */
    before,
    /** Returns the index of the first decoded character that begins at or after an index in the written text. */
    after: (index: number): number => before(index) + (toWritten(before(index)) >= index ? 0 : 1),
  };
}

// Derives, from a regular expression, one that finds the beginning of a match at the end of a text.

/** Matches the end of the text, whatever the flags. */
const end = "(?![^])";

const pieces = {
  /** Parts that a beginning cannot be derived from: lookaheads and back references. */
  unsupported: /\(\?[=!]|\\[1-9k]/y,
  lookbehind: /\(\?<[=!]/y,
  group: /\((?:\?<[^>]*>|\?:)?/y,
  groupWithFlags: /\(\?[ims-]+:/y,
  assertion: /\\[bB]|[\^$]/y,
  quantifier: /(?:[*+?]|\{\d+(?:,\d*)?\})\??/y,
  characterClass: /\[(?:\\[^]|[^\]\\])*\]/y,
  escape:
    /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u\{[\da-fA-F]+\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[pP]\{[^}]*\}|[^])/y,
  codePoint: /[^]/uy,
  codeUnit: /[^]/y,
};

/**
 * Returns an expression that matches a text from an index to its end if the text can be continued to a match of `pattern` at that index. It may also match
 * where no continuation exists. Returns `undefined` for a pattern with a lookahead, a back reference or the flag `v`.
 */
function partialOf({ source, flags }: RegExp): RegExp | undefined {
  if (flags.includes("v")) return undefined;
  const unicode = flags.includes("u");
  let at = 0;

  function take(piece: RegExp): string | undefined {
    piece.lastIndex = at;
    const match = piece.exec(source)?.[0];
    at += match?.length ?? 0;
    return match;
  }

  /** Copies a lookbehind up to its closing parenthesis. */
  function copyGroup(opening: string): string {
    let copied = opening;
    for (let depth = 1; depth > 0;) {
      const piece = take(pieces.escape) ?? take(pieces.characterClass) ?? take(pieces.codeUnit) ?? "";
      if (piece === "(") depth++;
      if (piece === ")") depth--;
      copied += piece;
    }
    return copied;
  }

  /** Derives the pieces up to the closing parenthesis of a group, or `undefined` if one is not supported. */
  function derive(): string | undefined {
    let derived = "";
    while (at < source.length) {
      if (take(/\)/y)) return derived;
      const piece = derivePiece();
      if (piece === undefined) return undefined;
      derived += piece;
    }
    return derived;
  }

  function derivePiece(): string | undefined {
    if (take(pieces.unsupported)) return undefined;
    const raw = take(/\|/y) ?? take(pieces.quantifier);
    if (raw) return raw;
    const lookbehind = take(pieces.lookbehind);
    if (lookbehind) return orEnd(copyGroup(lookbehind));
    const group = take(pieces.groupWithFlags) ?? (take(pieces.group) && "(?:");
    if (group) {
      const inner = derive();
      return inner === undefined ? undefined : `${group}${inner}|${end})`;
    }
    const character = unicode ? pieces.codePoint : pieces.codeUnit;
    const single = take(pieces.assertion) ?? take(pieces.characterClass) ?? take(pieces.escape) ?? take(character);
    return orEnd(single ?? "");
  }

  const derived = derive();
  return derived === undefined ? undefined : new RegExp(`(?:${derived})${end}`, `${flags.replace(/[gy]/g, "")}g`);
}

/** Lets a piece of a pattern also match the end of the text. */
function orEnd(piece: string): string {
  return `(?:${piece}|${end})`;
}

// Finds secrets, and the beginnings of secrets.

/** The secrets and patterns that a mask hides. */
interface Hidden {
  /** Exact texts. */
  readonly secrets: readonly string[];
  /** Texts of a known form. */
  readonly patterns: readonly RegExp[];
  /** Characters that are held back for a pattern whose beginning cannot be derived. */
  readonly window: number;
}

/** A range of a text that is masked. */
export type Span = readonly [start: number, end: number];

/** Finds the secrets in a text, also if they are written with the escapes of JSON, or of JSON in JSON. */
export type Mask = ReturnType<typeof maskOf>;

/** The text that takes the place of a secret. It counts as a secret itself, so that no part of it is masked. */
export const placeholder = "[redacted]";

/**
 * The number of times that a text is masked at most. The mask of a secret may uncover the next one: what stood in the middle of a word stands at its beginning
 * then. More of them that uncover one another are not found.
 */
export const maxRounds = 32;

/** Replaces the spans in the range `from` to `to` of a text. */
export function cover(text: string, spans: readonly Span[], from = 0, to: number = text.length): string {
  let covered = "";
  let last = from;
  for (const [start, end] of spans) {
    if (end > to) break;
    covered += `${text.slice(last, start)}${placeholder}`;
    last = end;
  }
  return covered + text.slice(last, to);
}

/** Creates a mask for `secrets` and `patterns`. */
export function maskOf({ secrets, patterns, window }: Hidden) {
  const searches = patterns.map(({ source, flags }) => new RegExp(source, `${flags.replace(/[gy]/g, "")}g`));
  const partials = patterns.map(partialOf);
  const texts = [...secrets, placeholder];
  const prefixes = texts.map((secret) => ({ secret, borders: bordersOf(secret), hasMask: /[[\]]/.test(secret) }));

  /** Returns the spans at or after `from`, in order, without overlaps. */
  function find(text: string, from = 0, known: readonly Span[] = []): readonly Span[] {
    const found = [...known];
    for (const secret of texts) {
      for (let at = text.indexOf(secret, from); at >= 0; at = text.indexOf(secret, at + 1)) {
        found.push([at, at + secret.length]);
      }
    }
    for (const search of searches) {
      search.lastIndex = from;
      if (!search.test(text)) continue; // twice as fast as the list of matches, and most texts have none
      search.lastIndex = from;
      for (const { 0: match, index } of text.matchAll(search)) {
        if (match !== "") found.push([index, index + match.length]);
      }
    }
    const decoded = decodeEscapes(text);
    if (!decoded || decoded.text === text) return united(found);
    const { before, after, toWritten } = decoded;
    return find(decoded.text, after(from), found.map(([start, end]) => [before(start), after(end)]))
      .map(([start, end]) => [toWritten(start), toWritten(end)]);
  }

  /** Returns the first index at which a secret may begin in this writing, without decoding escapes. */
  function partialFrom(text: string, from: number, follows: boolean): number {
    let first = text.length;
    for (const { secret, borders, hasMask } of prefixes) {
      if (follows && !hasMask) continue;
      const start = Math.max(from, text.length - secret.length + 1);
      first = Math.min(first, text.length - prefixLength(secret, borders, text, start));
    }
    for (const partial of partials) {
      if (!partial) {
        if (!follows) first = Math.min(first, Math.max(from, text.length - window));
        continue;
      }
      partial.lastIndex = from;
      first = Math.min(first, partial.exec(text)?.index ?? first);
    }
    return first;
  }

  /**
   * Returns the first index at or after `from` at which a secret may begin that more text would complete or extend; else the length of the text. If a text
   * `follows` that is held back, only those count of which a mask may be a part: the others were looked for in the text before it was masked.
   */
  function openFrom(text: string, from: number, follows = false): number {
    const first = partialFrom(text, from, follows);
    const decoded = decodeEscapes(text);
    if (!decoded) return first;
    const { writtenLength, before, after, toWritten } = decoded;
    const complete = decoded.text.slice(0, before(writtenLength));
    const maxFrom = Math.max(from, Math.min(toWritten(before(first)), writtenLength)); // not within an escape, which is masked as a whole
    if (complete === text) return maxFrom;
    const inner = openFrom(complete, after(from), follows);
    return inner === complete.length ? maxFrom : Math.min(maxFrom, toWritten(inner));
  }

  /** Masks a complete text. Masking it again changes nothing. */
  function whole(text: string): string {
    let masked = text;
    for (let round = 0; round < maxRounds; round++) {
      const next = cover(masked, find(masked));
      if (next === masked) break;
      masked = next;
    }
    return masked;
  }

  return {
    find: (text: string, from?: number) => find(text, from),
    openFrom,
    whole,
    /** The number of characters after a text that a pattern may look at whose beginning cannot be derived. */
    lookahead: partials.includes(undefined) ? window : 0,
  };
}

/** Merges spans that overlap: masking one of them would show a piece of the other. */
function united(spans: readonly Span[]): readonly Span[] {
  const merged: [start: number, end: number][] = [];
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b)) {
    const last = merged.at(-1);
    if (last && start < last[1]) last[1] = Math.max(last[1], end);
    else merged.push([start, end]);
  }
  return merged;
}

/** Returns the length of the longest prefix of `secret`, but not all of it, with which `text` ends. Only looks at the text from `start` on. */
function prefixLength(secret: string, borders: Uint32Array, text: string, start: number): number {
  let matched = 0;
  for (let at = start; at < text.length; at++) {
    while (matched > 0 && secret[matched] !== text[at]) matched = borders[matched - 1] ?? 0;
    if (secret[matched] === text[at]) matched++;
    if (matched === secret.length) matched = borders[matched - 1] ?? 0;
  }
  return matched;
}
