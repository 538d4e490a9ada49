/**
 * Searches lines for a text or a regular expression, in linear time and in slices.
 *
 * @module
 */
import { RE2JS, RE2JSException } from "re2js";
import { ToolError } from "../../../mod.ts";
import { finder } from "./text.ts";

const maxPatternLength = 1_000;
/** Instructions of a compiled pattern. */
const maxProgramSize = 1_000;
/** Characters of a line that is matched with a regular expression. It takes up to half a second, and cannot be interrupted. */
export const maxMatchedLength = 20_000;
/** Cost of one search in characters. All parts of a search together take less than two seconds. */
const maxCost = 12_000_000;
/** Cost after which a search lets other work of the process run. It takes less than a tenth of a second, unless one line takes longer. */
const maxSlice = 500_000;
/** Characters that cost as much as one more line. */
const charactersPerLine = 8;
/** Bytes of a file that cost as much as a character. */
const bytesPerCharacter = 8;
/** Characters that cost as much as a millisecond of matching. Few patterns need more time than that. */
const charactersPerMs = 10_000;

/** A search with a bounded cost. */
export interface Search {
  /** Returns the part of a file's bytes that the search can reach. */
  reachable(bytes: Uint8Array): Uint8Array;
  /** Returns whether a line matches; false once the search is exhausted. */
  matches(line: string): boolean;
  /** Returns whether the search has reached its cost limit. */
  exhausted(): boolean;
  /** Returns true once for each slice: it is time to let other work run. */
  sliced(): boolean;
  /** Returns whether a line was too long to match. */
  skipped(): boolean;
}

/** Starts a search for `pattern`, a literal text or a regular expression. Throws a `ToolError` if the pattern is empty, invalid or too complex. */
export function search(pattern: string, regex: boolean): Search {
  if (pattern === "") throw new ToolError("Cannot search: `pattern` is empty.");
  const test = regex ? regexMatcher(pattern) : literalMatcher(pattern);
  const longest = regex ? maxMatchedLength : Infinity;
  const now = regex ? () => performance.now() : () => 0; // a literal text takes no longer than its characters cost
  let left = maxCost;
  let sliceEnd = maxCost - maxSlice;
  let skipped = false;
  return {
    reachable(bytes) {
      const reached = bytes.subarray(0, 3 * Math.max(0, left) + 3); // UTF-8 has at most three bytes for a character of JavaScript
      left -= reached.length / bytesPerCharacter;
      return reached;
    },
    matches(line) {
      left -= line.length + charactersPerLine;
      const isTooLong = line.length > longest;
      skipped ||= isTooLong;
      if (left < 0 || isTooLong) return false;
      const start = now();
      const found = test(line);
      left -= (now() - start) * charactersPerMs;
      return found;
    },
    exhausted: () => left < 0,
    sliced() {
      if (left > sliceEnd) return false;
      sliceEnd = left - maxSlice;
      return true;
    },
    skipped: () => skipped,
  };
}

function literalMatcher(text: string): (line: string) => boolean {
  const find = finder(text);
  return (line) => line.length >= text.length && find(line).next().done === false;
}

/** Compiles a pattern for RE2, whose matching time is proportional to the length of the line times the size of the pattern. */
function regexMatcher(pattern: string): (line: string) => boolean {
  if (pattern.length > maxPatternLength) {
    throw new ToolError(`Cannot search: \`pattern\` is too long; expected at most ${maxPatternLength} characters.`);
  }
  const compiled = compile(pattern);
  if (compiled.programSize() > maxProgramSize) {
    throw new ToolError("Cannot search: `pattern` is too complex; expected fewer repetitions.");
  }
  return (line) => compiled.test(line);
}

function compile(pattern: string): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause;
    const reason = cause.message.replace(/^error parsing regexp: /, "");
    throw new ToolError(`Cannot search: ${reason}; expected the syntax of RE2.`, { cause });
  }
}
