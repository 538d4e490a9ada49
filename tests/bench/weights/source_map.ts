/**
 * Source maps: they tell from which source each character of a bundle comes.
 *
 * @module
 */

/** The part of a source map (version 3) that is read. */
export interface SourceMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

/** A bundle, and its source map. */
export interface MappedCode {
  readonly code: string;
  readonly map: SourceMap;
}

const comment = "//# sourceMappingURL=data:application/json;base64,";
const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Splits a bundle from the source map in its last comment. */
export function splitSourceMap(text: string): MappedCode {
  const start = text.lastIndexOf(comment);
  if (start < 0) throw new TypeError("Cannot read a source map: the bundle ends without one");
  const bytes = Uint8Array.from(atob(text.slice(start + comment.length).trim()), (char) => char.charCodeAt(0));
  return { code: text.slice(0, start), map: JSON.parse(new TextDecoder().decode(bytes)) };
}

/** Returns how many characters come from each source. Those that the bundler adds come from "". */
export function charactersBySource({ code, map }: MappedCode): Map<string, number> {
  const counts = new Map<string, number>();
  const add = (source: number, count: number) => {
    const name = map.sources[source] ?? "";
    if (count > 0) counts.set(name, (counts.get(name) ?? 0) + count);
  };
  const mapped = map.mappings.split(";");
  let source = 0;
  for (const [index, line] of code.split("\n").entries()) {
    let column = 0;
    let current = -1;
    for (const segment of mapped[index]?.split(",").filter(Boolean) ?? []) {
      const [columns = 0, sources] = numbersOf(segment); // both relative to the segment before; only a column: no source
      add(current, columns);
      column += columns;
      if (sources !== undefined) source += sources;
      current = sources === undefined ? -1 : source;
    }
    add(current, line.length - column);
  }
  add(-1, code.split("\n").length - 1);
  return counts;
}

/** Decodes a segment of base64 VLQ numbers: five bits per digit, the lowest first, of which the very first is the sign. */
function numbersOf(segment: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  let shift = 0;
  for (const char of segment) {
    const digit = digits.indexOf(char);
    value += (digit & 31) << shift;
    shift += 5;
    if (digit >= 32) continue; // more digits follow
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    value = shift = 0;
  }
  return numbers;
}
