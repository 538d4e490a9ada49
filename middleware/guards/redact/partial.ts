/**
 * Derives, from a regular expression, one that finds the beginning of a match at the end of a text.
 *
 * @module
 */

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
export function partialOf({ source, flags }: RegExp): RegExp | undefined {
  if (flags.includes("v")) return undefined;
  const unicode = flags.includes("u");
  let at = 0;

  function take(piece: RegExp): string | undefined {
    piece.lastIndex = at;
    const taken = piece.exec(source)?.[0];
    at += taken?.length ?? 0;
    return taken;
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
