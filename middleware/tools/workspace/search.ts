/**
 * Searches lines for a text or a regular expression, in linear time.
 *
 * @module
 */
import { RE2JS, RE2JSException } from "re2js";
import { ToolError } from "../../../mod.ts";
import { indexesOf } from "./text.ts";

const maxPatternLength = 1_000;
/** Instructions of a compiled pattern. */
const maxProgramSize = 1_000;
/** Characters that one search for a short pattern reads. A longer pattern costs more per character; no search takes more than about two seconds. */
const maxCost = 10_000_000;
/** Instructions that cost as much as one character. */
const instructionsPerCharacter = 8;

/** A search over many lines with a bounded cost. */
export interface Search {
  /** Returns whether a line matches; false once the search is exhausted. */
  matches(line: string): boolean;
  /** Returns whether the search has reached its cost limit. */
  exhausted(): boolean;
}

/** A way to match one line, and its cost per character. */
interface Matcher {
  readonly test: (line: string) => boolean;
  readonly cost: number;
}

/** Starts a search for `pattern`, a literal text or a regular expression. Throws a `ToolError` if the pattern is empty, invalid or too complex. */
export function search(pattern: string, regex: boolean): Search {
  if (pattern === "") throw new ToolError("Cannot search: `pattern` is empty.");
  const { test, cost } = regex ? regexMatcher(pattern) : literalMatcher(pattern);
  let left = maxCost;
  return {
    matches(line) {
      left -= (line.length + 1) * cost;
      return left >= 0 && test(line);
    },
    exhausted: () => left < 0,
  };
}

function literalMatcher(text: string): Matcher {
  return { test: (line) => indexesOf(text, line).next().done === false, cost: 1 };
}

/** Compiles a pattern for RE2, whose matching time is proportional to the length of the line times the size of the pattern. */
function regexMatcher(pattern: string): Matcher {
  if (pattern.length > maxPatternLength) {
    throw new ToolError(`Cannot search: \`pattern\` is too long; expected at most ${maxPatternLength} characters.`);
  }
  const compiled = compile(pattern);
  const size = compiled.programSize();
  if (size > maxProgramSize) {
    throw new ToolError("Cannot search: `pattern` is too complex; expected fewer repetitions.");
  }
  return { test: (line) => compiled.test(line), cost: 1 + size / instructionsPerCharacter };
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
