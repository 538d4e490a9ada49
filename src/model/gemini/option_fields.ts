/**
 * Converts the options of requests to fields of `generateContent`.
 *
 * @module
 */
import type { UnknownObject } from "../../protocol/shape.ts";
import type { ModelEffort, ModelRequest } from "../model.ts";
import { checkOptions, optionError, optionValue } from "../request_options.ts";

/** Returns the part of `generationConfig` that the options set. `thoughts` requests summaries of the reasoning. */
export function generationOptions(request: ModelRequest, model: string, thoughts: boolean): UnknownObject {
  checkOptions(request, { model, api: "the Gemini API", unsupported: [] });
  const { stop, seed, effort, parallelCalls, cache, logprobs } = request.options;
  if (parallelCalls === false) throw optionError(model, "the Gemini API cannot turn off parallel calls");
  if (cache) optionValue(model, "cache", cache, { short: true }); // the API caches for minutes by default
  const thinking = { ...(thoughts && { includeThoughts: true }), ...(effort && effortField(model, effort)) };
  return {
    stopSequences: stop,
    seed,
    ...(logprobs !== undefined && { responseLogprobs: true, logprobs }),
    ...(Object.keys(thinking).length > 0 && { thinkingConfig: thinking }),
  };
}

/** Returns the choice of tools. Models since Gemini 3 combine tools of both kinds if the response contains the calls of those that the provider runs. */
export function toolOptions(
  { tools, options: { toolChoice } }: ModelRequest,
  hasBuiltIn: boolean,
  model: string,
): UnknownObject {
  if (tools.length === 0) return {};
  const config = typeof toolChoice === "object"
    ? { mode: "ANY", allowedFunctionNames: [toolChoice.tool] }
    : toolChoice && { mode: modes[toolChoice] };
  const isMixed = hasBuiltIn && !/^gemini-[12]/.test(model);
  if (!config && !isMixed) return {};
  return {
    toolConfig: { functionCallingConfig: config, includeServerSideToolInvocations: isMixed ? true : undefined },
  };
}

const modes = { auto: "AUTO", none: "NONE", required: "ANY" };

/** Budgets of tokens, which models before Gemini 3 have instead of levels: those of Google's own compatibility with OpenAI. */
const budgets = { none: 0, minimal: 1_024, low: 1_024, medium: 8_192, high: 24_576 };
const levels = { minimal: "MINIMAL", low: "LOW", medium: "MEDIUM", high: "HIGH" };

function effortField(model: string, effort: ModelEffort): UnknownObject {
  return /^gemini-[12]/.test(model)
    ? { thinkingBudget: optionValue(model, "effort", effort, budgets) }
    : { thinkingLevel: optionValue(model, "effort", effort, levels) };
}
