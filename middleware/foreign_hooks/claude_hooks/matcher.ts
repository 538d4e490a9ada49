/**
 * Matchers: for which tools, sources, agents, files a hook is.
 *
 * @module
 */
import type { Dialect } from "./dialect.ts";
import type { HookEvent } from "./input.ts";

/** Whether a hook is for what an event is about; events that are about nothing are for every hook. */
export type Matches = (about: string | undefined) => boolean;

const all: Matches = () => true;

/** What a matcher means for the hooks of an event. */
export function matching(matcher: string | undefined, event: HookEvent, { list, malformed }: Dialect): Matches {
  if (matcher === undefined || matcher === "" || matcher === "*") return all;
  const names = event in list ? list[event] : list.otherwise;
  if (names?.test(matcher)) {
    const listed = new Set(matcher.split(/[|,]/).map((name) => name.trim()));
    return (about) => about === undefined || listed.has(about);
  }
  const pattern = patternOf(matcher);
  if (pattern) return (about) => about === undefined || pattern.test(about);
  return (about) => about === undefined || (malformed === "itself" && about === matcher);
}

/** A regular expression; nothing where the text is none. */
export function patternOf(text: string): RegExp | undefined {
  try {
    return new RegExp(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
