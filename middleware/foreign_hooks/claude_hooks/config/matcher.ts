/**
 * Matchers: the tools, sources, agents or files that a hook is for.
 *
 * @module
 */
import type { Dialect } from "./dialect.ts";
import { events, occurs } from "./events.ts";

/** Tests the value that an event is about. An event without a value matches every hook. */
export type Matches = (value: string | undefined) => boolean;

/** Compiles a matcher for the hooks of an event. */
export function matching(matcher: string | undefined, event: string, { nameList, malformed }: Dialect): Matches {
  if (matcher === undefined || isAll(matcher)) return () => true;
  const test = namesIn(matcher, event, nameList) ?? patternOf(matcher);
  return (value) => {
    if (value === undefined) return true;
    return test ? test.test(value) : malformed === "itself" && value === matcher;
  };
}

/** Says why a matcher matches no tool and no value; undefined if it may match one. */
export function matcherProblem(matcher: string, event: string, { nameList, malformed }: Dialect): string | undefined {
  const matches = occurs(event) ? events[event].matches : undefined;
  if (matches === undefined || isAll(matcher) || namesIn(matcher, event, nameList)) return undefined;
  const isForTools = matches === "tool_name";
  if (!patternOf(matcher)) {
    const isText = malformed === "itself" && !isForTools; // such as the name of a file
    return isText ? undefined : `the matcher "${matcher}" is an invalid regular expression`;
  }
  return isForTools && isForNoTool(matcher)
    ? `the matcher "${matcher}" matches no tool; expected its name, or a regular expression for names`
    : undefined;
}

/** Whether each alternative of a regular expression contains a character that no name of a tool contains, such as the space in `Bash(rm *)`. */
function isForNoTool(pattern: string): boolean {
  const literal = pattern.replace(/\[[^\]]*\]|\{[\d,]*\}|\(\?[:=!]/g, "");
  return literal.split("|").every((piece) => /[\s,:/]/.test(piece));
}

function isAll(matcher: string): boolean {
  return matcher === "" || matcher === "*";
}

function namesIn(matcher: string, event: string, { tools, values, other }: Dialect["nameList"]) {
  const row = occurs(event) ? events[event] : undefined;
  const list = row?.matches === "tool_name" ? tools : (occurs(event) && other[event]) || values;
  if (!list?.test(matcher)) return undefined;
  const names = new Set(matcher.split(/[|,]/).map((name) => name.trim()));
  return { test: (value: string) => names.has(value) };
}

/** Compiles a regular expression; undefined for an invalid one. */
export function patternOf(text: string): RegExp | undefined {
  try {
    return new RegExp(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
