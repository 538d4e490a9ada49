/**
 * Texts: files as the model reads them, and the places where one text is in another.
 *
 * @module
 */
import { ToolError } from "../../../mod.ts";

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Bytes as text, nothing lost; nothing where they are none. */
export function decode(bytes: Uint8Array): string | undefined {
  try {
    const text = decoder.decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Text as bytes, nothing lost. Throws a `ToolError` for half a character. */
export function encode(text: string): Uint8Array<ArrayBuffer> {
  if (!text.isWellFormed()) throw new ToolError("Cannot write this text: it has half a character.");
  return encoder.encode(text);
}

/**
 * Where `part` begins in `text`, places that overlap too. It takes time in proportion to both together, whatever is in them
 * (Knuth, Morris, Pratt 1977). An empty part is nowhere.
 */
export function* placesOf(part: string, text: string): Generator<number> {
  if (part === "") return;
  const back = fallbacks(part);
  for (let at = 0, matched = 0; at < text.length; at++) {
    while (matched > 0 && (matched === part.length || part[matched] !== text[at])) matched = back[matched - 1] ?? 0;
    if (part[matched] === text[at]) matched++;
    if (matched === part.length) yield at + 1 - matched;
  }
}

/** How much of `part` still matches where it stops to, for each of its lengths. */
function fallbacks(part: string): Uint32Array {
  const back = new Uint32Array(part.length);
  for (let at = 1, matched = 0; at < part.length; at++) {
    while (matched > 0 && part[matched] !== part[at]) matched = back[matched - 1] ?? 0;
    if (part[matched] === part[at]) matched++;
    back[at] = matched;
  }
  return back;
}

/** `text` with `old`, which has to be in it once, replaced by `by`. Throws a `ToolError` where that cannot be done. */
export function replaced(text: string, old: string, by: string): string {
  if (old === "") throw new ToolError("Cannot edit: `old` is empty. Say the text that is to be replaced.");
  if (old === by) throw new ToolError("Cannot edit: `old` and `new` are the same.");
  if (!old.isWellFormed()) throw new ToolError("Cannot edit: `old` has half a character.");
  const places = [...placesOf(old, text)];
  const [place] = places;
  if (place === undefined) {
    const hint = text.includes("\r\n") && !old.includes("\r") ? " Its lines end in \\r\\n." : "";
    throw new ToolError(`Cannot edit: \`old\` is not in the file. It has to match exactly.${hint}`);
  }
  if (places.length > 1) {
    throw new ToolError(`Cannot edit: \`old\` is in the file ${places.length} times. Say more of what is around it.`);
  }
  return text.slice(0, place) + by + text.slice(place + old.length);
}
