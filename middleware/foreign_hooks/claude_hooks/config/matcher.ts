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
  const names = namesIn(matcher, event, nameList);
  const pattern = names ? undefined : patternOf(matcher);
  return (value) => {
    if (value === undefined) return true;
    if (names) return names.has(value);
    return pattern ? pattern.test(value) : malformed === "itself" && value === matcher;
  };
}

/** Says why a matcher matches no tool and no value; undefined if it may match one. */
export function matcherProblem(matcher: string, event: string, { nameList, malformed }: Dialect): string | undefined {
  const matches = occurs(event) ? events[event].matches : undefined;
  if (matches === undefined || isAll(matcher)) return undefined;
  const isForTools = matches === "tool_name";
  const names = namesIn(matcher, event, nameList);
  if (names) return isForTools && [...names].every(isForNoTool) ? noTool : undefined;
  if (!patternOf(matcher)) {
    const isText = malformed === "itself" && !isForTools; // such as the name of a file
    return isText ? undefined : invalidPattern;
  }
  return isForTools && isForNoTool(matcher) ? noTool : undefined;
}

/** The problem of a matcher that is an invalid regular expression. */
export const invalidPattern = "it is an invalid regular expression";

/** The problem of a matcher that matches no tool. */
export const noTool = "it matches no tool; expected its name, or a regular expression for names";

/**
 * Whether a matcher certainly matches no tool. It is a permission rule, such as `Bash(rm *)`, or a text without operators other than `|`, and each of its
 * alternatives needs a character that no name of a tool contains. Other regular expressions may match one.
 */
export function isForNoTool(matcher: string): boolean {
  const rule = /^[\w-]+\(([^()[\]{}?\\]*)\)$/.exec(matcher)?.[1];
  const text = rule ?? (/^[\w\s,:/|-]*$/.test(matcher) ? matcher : "");
  return text.split("|").every((piece) => /[\s,:/](?!\*)|\w[\s:]\*$/.test(piece));
}

function isAll(matcher: string): boolean {
  return matcher === "" || matcher === "*";
}

/** Returns the names in a list of names; undefined if the matcher is a regular expression. */
function namesIn(
  matcher: string,
  event: string,
  { tools, values, other }: Dialect["nameList"],
): ReadonlySet<string> | undefined {
  const row = occurs(event) ? events[event] : undefined;
  const list = row?.matches === "tool_name" ? tools : (occurs(event) && other[event]) || values;
  if (!list?.test(matcher)) return undefined;
  return new Set(matcher.split(/[|,]/).map((name) => name.trim()));
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
