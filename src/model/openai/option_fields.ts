/**
 * Converts the options of requests to fields of chat completions.
 *
 * @module
 */
import type { UnknownObject } from "../../protocol/shape.ts";
import type { ModelRequest } from "../model.ts";
import { checkOptions, optionValue } from "../request_options.ts";

/** Returns the fields of the options. `own` is true for OpenAI's servers, which alone have an option for caching. */
export function optionFields(request: ModelRequest, model: string, own: boolean): UnknownObject {
  const api = own ? "chat completions" : "a compatible server";
  checkOptions(request, { model, api, unsupported: own ? [] : ["cache"] });
  const { tools, options: { toolChoice, parallelCalls, stop, seed, cache, logprobs } } = request;
  return {
    stop,
    seed,
    ...(logprobs !== undefined && { logprobs: true, top_logprobs: logprobs }),
    ...(cache && optionValue(model, "cache", cache, cacheFields)),
    ...(tools.length > 0 && {
      tool_choice: typeof toolChoice === "object"
        ? { type: "function", function: { name: toolChoice.tool } }
        : toolChoice,
      parallel_tool_calls: parallelCalls,
    }),
  };
}

/** OpenAI caches for minutes by default, and has no option to turn that off. */
const cacheFields = { short: {}, long: { prompt_cache_retention: "24h" } };
