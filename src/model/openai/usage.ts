/**
 * Token counts in chat completions, which servers report in different places and forms.
 *
 * @module
 */
import { addUsage, noUsage, type Usage } from "../../protocol/message.ts";
import type { UnknownObject } from "../../protocol/shape.ts";
import { numberIn, objectIn } from "../response_members.ts";

/** Adds up the counts. Most servers count reasoning within the output, and some beside it: then it is larger, or the total shows it. */
export function usageOf(counts: UnknownObject): Usage {
  const input = numberIn(counts, "prompt_tokens");
  const written = numberIn(counts, "completion_tokens");
  const total = numberIn(counts, "total_tokens");
  const read = objectIn(counts, "prompt_tokens_details");
  const reasoning = numberIn(objectIn(counts, "completion_tokens_details"), "reasoning_tokens") ||
    numberIn(counts, "reasoning_tokens");
  const isBeside = reasoning > written || (reasoning > 0 && total === input + written + reasoning);
  return addUsage(noUsage, {
    input,
    output: isBeside ? written + reasoning : written,
    cached: firstCount([read, "cached_tokens"], [counts, "prompt_cache_hit_tokens"], [counts, "cached_tokens"]),
    cacheWrite: firstCount([read, "cache_write_tokens"], [read, "cache_creation_tokens"], [
      counts,
      "cache_creation_input_tokens",
    ]),
    reasoning,
  });
}

/** Returns the first count that is not 0. Servers name it differently. */
function firstCount(...places: readonly (readonly [UnknownObject, string])[]): number {
  return places.map(([from, name]) => numberIn(from, name)).find((count) => count > 0) ?? 0;
}
