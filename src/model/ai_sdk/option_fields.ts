/**
 * Converts the options of requests to fields of calls of the AI SDK.
 *
 * @module
 */
import type { UnknownObject } from "../../protocol/shape.ts";
import type { ModelRequest } from "../model.ts";
import { checkOptions, optionValue } from "../request_options.ts";

/** The levels of specification v4. */
const efforts = { none: "none", minimal: "minimal", low: "low", medium: "medium", high: "high", xhigh: "xhigh" };

/** Returns the fields of the options. The SDK leaves parallel calls and caching to `providerOptions`, and before v4 effort too. */
export function optionFields(request: ModelRequest, model: string, version: string): UnknownObject {
  const unsupported = ["parallelCalls", "cache", "logprobs", ...(version === "v4" ? [] : ["effort"] as const)] as const;
  checkOptions(request, { model, api: `the AI SDK (${version})`, unsupported });
  const { tools, options: { toolChoice, stop, seed, effort } } = request;
  return {
    ...(stop && { stopSequences: stop }),
    ...(seed !== undefined && { seed }),
    ...(effort && { reasoning: optionValue(model, "effort", effort, efforts) }),
    ...(toolChoice && tools.length > 0 && {
      toolChoice: typeof toolChoice === "object" ? { type: "tool", toolName: toolChoice.tool } : { type: toolChoice },
    }),
  };
}
