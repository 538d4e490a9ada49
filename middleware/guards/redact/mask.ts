/**
 * Masking what must not be seen, in texts that are whole and in texts that grow.
 *
 * @module
 */
import type { Rewriter } from "../../../mod.ts";

/** What must not be seen. */
export interface Hidden {
  /** Exact texts. */
  readonly secrets: readonly string[];
  /** Texts of a known form. */
  readonly patterns: readonly RegExp[];
  /** Characters by which a match of a pattern is known, with what the pattern looks at around it. */
  readonly window: number;
}

/** What hides it. */
export interface Mask {
  /** Masks a text that is complete. */
  readonly whole: (text: string) => string;
  /** Masks a text that grows; in all it lets go of what `whole` makes of it. */
  readonly growing: Rewriter;
}

type Span = readonly [start: number, end: number];

/** A mask for `secrets` and `patterns`, also where they are written with the escapes of JSON. */
export function maskOf({ secrets, patterns, window }: Hidden): Mask {
  const searches = patterns.map(({ source, flags }) => new RegExp(source, `${flags.replace(/[gy]/g, "")}g`));

  /** What is to be masked, and `known`: apart from each other, in order. */
  function find(text: string, known: readonly Span[] = []): readonly Span[] {
    const found = [...known];
    for (const secret of secrets) {
      for (let at = text.indexOf(secret); at >= 0; at = text.indexOf(secret, at + 1)) {
        found.push([at, at + secret.length]);
      }
    }
    for (const search of searches) {
      for (const { 0: match, index } of text.matchAll(search)) {
        if (match !== "") found.push([index, index + match.length]);
      }
    }
    const read = unescaped(text);
    if (!read || read.text === text) return united(found);
    return find(read.text, found.map(([start, end]) => [read.before(start), read.after(end)]))
      .map(([start, end]) => [read.place(start), read.place(end)]);
  }

  /** How far a text is settled, until `most`: whatever follows, nothing that begins before becomes one to be masked. */
  function settled(text: string, most = text.length): number {
    let end = Math.max(0, Math.min(most, searches.length > 0 ? text.length - window : text.length));
    for (const secret of secrets) {
      const first = secret.charAt(0);
      let at = text.indexOf(first, Math.max(0, text.length - secret.length + 1));
      for (; at >= 0 && at < end; at = text.indexOf(first, at + 1)) if (secret.startsWith(text.slice(at))) end = at;
    }
    const read = unescaped(text);
    if (!read) return end;
    if (read.open < text.length) return settled(text.slice(0, read.open), end);
    return read.text === text ? end : read.place(settled(read.text, read.before(end)));
  }

  /** Whether what follows `cut` is masked by itself as it is now: a pattern may look back. */
  function alike(text: string, spans: readonly Span[], cut: number): boolean {
    if (searches.length === 0) return true;
    const rest = spans.filter(([start]) => start >= cut);
    const alone = find(text.slice(cut));
    return rest.length === alone.length &&
      rest.every(([start, end], index) => alone[index]?.[0] === start - cut && alone[index]?.[1] === end - cut);
  }

  function growing(text: string, at: "more" | "end" | "cut"): readonly [out: string, held: string] {
    if (at === "end") return [whole(text), ""];
    const most = settled(text);
    if (most === 0) return ["", text];
    const spans = find(text);
    let cut = between(text, spans, most);
    for (let step = 1; !alike(text, spans, cut); step *= 2) cut = between(text, spans, settled(text, cut - step));
    return [covered(text.slice(0, cut), spans.filter(([, end]) => end <= cut)), text.slice(cut)];
  }

  function whole(text: string): string {
    return covered(text, find(text));
  }

  return { whole, growing };
}

/** The last place until `at` that is within no span and no character. */
function between(text: string, spans: readonly Span[], at: number): number {
  const place = /[\uDC00-\uDFFF]/.test(text.charAt(at)) ? Math.max(0, at - 1) : at;
  const [start] = spans.find(([start, end]) => start < place && place < end) ?? [place];
  return start;
}

function covered(text: string, spans: readonly Span[]): string {
  let out = "";
  let last = 0;
  for (const [start, end] of spans) {
    out += `${text.slice(last, start)}[redacted]`;
    last = end;
  }
  return out + text.slice(last);
}

/** Spans that overlap, made one: masking one of them would show a piece of the other. */
function united(spans: readonly Span[]): readonly Span[] {
  const apart: [start: number, end: number][] = [];
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b)) {
    const last = apart.at(-1);
    if (last && start < last[1]) last[1] = Math.max(last[1], end);
    else apart.push([start, end]);
  }
  return apart;
}

/** A text as JSON reads it, and where its characters stand in what was written. */
interface Reading {
  readonly text: string;
  /** Where an escape begins that is not complete; else the end. */
  readonly open: number;
  /** Where a character stands. */
  place(index: number): number;
  /** The last character that does not begin after `place`. */
  before(place: number): number;
  /** The first character that does not begin before `place`. */
  after(place: number): number;
}

/** An escape; a backslash that is none; anything else. Nothing at a backslash that may yet become an escape. */
const piece = /\\u[\dA-Fa-f]{4}|\\["\\/bfnrt]|\\(?!(?:u[\dA-Fa-f]{0,3})?$)|[^\\]+/gy;

/** Reads the escapes of a text; nothing where it has no backslash. */
function unescaped(written: string): Reading | undefined {
  if (!written.includes("\\")) return undefined;
  const places: number[] = [];
  const indexes: number[] = [];
  let text = "";
  let open = 0;

  function add(chars: string, taken: number): void {
    for (let each = 0; each < taken; each++) indexes.push(text.length + Math.min(each, chars.length - 1));
    for (let each = 0; each < chars.length; each++) places.push(open + each);
    text += chars;
    open += taken;
  }

  for (const [taken] of written.matchAll(piece)) {
    add(taken.length > 1 && taken.startsWith("\\") ? JSON.parse(`"${taken}"`) : taken, taken.length);
  }
  const complete = open;
  add(written.slice(open), written.length - open);
  const place = (index: number) => places[index] ?? written.length;
  const before = (at: number) => indexes[at] ?? text.length;
  return {
    text,
    open: complete,
    place,
    before,
    after: (at) => before(at) + (place(before(at)) === at ? 0 : 1),
  };
}
