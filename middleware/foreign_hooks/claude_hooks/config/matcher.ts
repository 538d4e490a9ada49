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
  if (matcher === undefined || matcher === "" || matcher === "*") return () => true;
  const test = namesIn(matcher, event, nameList) ?? patternOf(matcher);
  return (value) => {
    if (value === undefined) return true;
    return test ? test.test(value) : malformed === "itself" && value === matcher;
  };
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
