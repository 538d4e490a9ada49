/**
 * The token usage of one response.
 *
 * @module
 */
import type { Usage } from "../protocol/message.ts";

/** Returns the usage of a response: that of its run at the end, without the tokens that the run had used before. A run that is lost reports none. */
export function usageSince(usage: Usage, before: Usage): Required<Usage> {
  const since = (key: keyof Usage) => Math.max(0, (usage[key] ?? 0) - (before[key] ?? 0));
  return {
    input: since("input"),
    output: since("output"),
    cached: since("cached"),
    cacheWrite: since("cacheWrite"),
    reasoning: since("reasoning"),
  };
}
