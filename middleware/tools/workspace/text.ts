/**
 * Decodes, searches and edits text.
 *
 * @module
 */
import { ToolError } from "../../../mod.ts";
import { bordersOf } from "../../../src/core/kit.ts";

const encoder = new TextEncoder();

/** Decodes UTF-8, and keeps a byte order mark. Returns `undefined` for bytes that are not text. If `cut` is set, the last character may be incomplete. */
export function decode(bytes: Uint8Array, { cut = false }: { readonly cut?: boolean } = {}): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: cut });
    return text.includes("\0") ? undefined : text;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Yields the lines of a text, without their ends. */
export function* linesIn(text: string): Generator<string> {
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = text.indexOf("\n", start);
    const last = end < 0 ? text.length : end;
    yield text.slice(start, end > start && text[end - 1] === "\r" ? last - 1 : last);
  }
}

/** Encodes `text` as UTF-8; returns `undefined` if it contains half of a surrogate pair. */
export function encode(text: string): Uint8Array<ArrayBuffer> | undefined {
  return text.isWellFormed() ? encoder.encode(text) : undefined;
}

/**
 * Returns a function that yields each index at which `part` begins in a text, overlaps included. It takes time proportional to the text (Knuth, Morris,
 * Pratt 1977). An empty part is not found.
 */
export function finder(part: string): (text: string) => Generator<number> {
  const borders = bordersOf(part);
  return function* (text) {
    if (part === "") return;
    for (let at = 0, matched = 0; at < text.length; at++) {
      while (matched > 0 && (matched === part.length || part[matched] !== text[at])) {
        matched = borders[matched - 1] ?? 0;
      }
      if (part[matched] === text[at]) matched++;
      if (matched === part.length) yield at + 1 - matched;
    }
  };
}

/** Replaces `old`, which must occur once in `text`, with `by`. Throws a `ToolError` that names `path` if it does not. */
export function replaceOnce(path: string, text: string, old: string, by: string): string {
  const refuse = (reason: string) => new ToolError(`Cannot edit ${path}: ${reason}.`);
  if (old === "") throw refuse("`old` is empty; expected the text to replace");
  if (old === by) throw refuse("`old` and `new` are equal");
  if (!old.isWellFormed()) throw refuse("`old` contains half of a surrogate pair");
  const [index, ...more] = finder(old)(text);
  if (index === undefined) {
    const hint = text.includes("\r\n") && !old.includes("\r") ? "; the lines of the file end in \\r\\n" : "";
    throw refuse(`\`old\` does not occur in the file; expected an exact match${hint}`);
  }
  if (more.length > 0) {
    throw refuse(`\`old\` occurs ${more.length + 1} times; expected a longer text that occurs once`);
  }
  return text.slice(0, index) + by + text.slice(index + old.length);
}
