/**
 * Converts the options of requests to fields of the messages API.
 *
 * @module
 */
import type { UnknownObject } from "../../protocol/shape.ts";
import type { ModelRequest } from "../model.ts";
import { checkOptions, optionValue } from "../request_options.ts";
import { strictSchema } from "../strict_schema.ts";

/** The levels of effort, each with the fields that set it. */
const efforts: Readonly<Record<string, { readonly effort?: string; readonly thinking?: UnknownObject }>> = {
  none: { thinking: { type: "disabled" } },
  low: { effort: "low" },
  medium: { effort: "medium" },
  high: { effort: "high" },
  xhigh: { effort: "xhigh" },
  max: { effort: "max" },
};

/** Returns the fields of the options. */
export function optionFields(request: ModelRequest, model: string): UnknownObject {
  checkOptions(request, { model, api: "the messages API", unsupported: ["seed", "logprobs"] });
  const { output, stop, effort: level } = request.options;
  const { effort, thinking } = level ? optionValue(model, "effort", level, efforts) : {};
  const schema = strictSchema(output);
  const format = schema?.type === "object" && { format: { type: "json_schema", schema } };
  return {
    ...((format || effort) && { output_config: { ...format, ...(effort && { effort }) } }),
    thinking,
    stop_sequences: stop,
    tool_choice: toolChoiceOf(request),
  };
}

/** The API sets parallel calls together with the choice of tools. */
function toolChoiceOf({ tools, options: { toolChoice, parallelCalls } }: ModelRequest): UnknownObject | undefined {
  if (tools.length === 0 || (toolChoice === undefined && parallelCalls === undefined)) return undefined;
  const alone = parallelCalls === undefined ? {} : { disable_parallel_tool_use: !parallelCalls };
  if (typeof toolChoice === "object") return { type: "tool", name: toolChoice.tool, ...alone };
  if (toolChoice === "none") return { type: "none" };
  return { type: toolChoice === "required" ? "any" : "auto", ...alone };
}

/** The cache control of a request, or none. A request overrides the adapter's option. */
export function cacheControl(
  request: ModelRequest,
  model: string,
  option: "5m" | "1h" | false,
): UnknownObject {
  const { cache } = request.options;
  const ttl = cache ? optionValue(model, "cache", cache, { none: false, short: "5m", long: "1h" } as const) : option;
  return ttl === false ? {} : { cache_control: { type: "ephemeral", ...(ttl === "1h" && { ttl }) } };
}
