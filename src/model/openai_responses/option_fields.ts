/**
 * Converts the options of requests to fields of the Responses API.
 *
 * @module
 */
import type { UnknownObject } from "../../protocol/shape.ts";
import type { ModelRequest } from "../model.ts";
import { checkOptions, optionValue } from "../request_options.ts";

/** Returns the fields of the options. `summary` requests summaries of the reasoning. */
export function optionFields(request: ModelRequest, model: string, summary: string | undefined): UnknownObject {
  checkOptions(request, { model, api: "the Responses API", unsupported: ["stop", "seed"] });
  const { toolChoice, parallelCalls, effort, cache, logprobs } = request.options;
  return {
    ...((effort ?? summary) && { reasoning: { effort, summary } }),
    ...(cache && optionValue(model, "cache", cache, cacheFields)),
    tool_choice: typeof toolChoice === "object" ? { type: "function", name: toolChoice.tool } : toolChoice,
    parallel_tool_calls: parallelCalls,
    top_logprobs: logprobs,
  };
}

/** OpenAI caches for minutes by default, and has no option to turn that off. */
const cacheFields = { short: {}, long: { prompt_cache_retention: "24h" } };
