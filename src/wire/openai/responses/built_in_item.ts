/**
 * Calls that the provider of the model runs, as the items of the Responses API.
 *
 * @module
 */
import { builtInItem as providerItem } from "../../../model/openai_responses/built_in_tools.ts";
import type { Json, ProviderCallPart, ProviderResultPart } from "../../../protocol/part.ts";
import { isObject } from "../../../protocol/shape.ts";
import type { OutputItem } from "./output.ts";

/** Returns the item of a call: that of OpenAI if it ran it, that of OpenAI's own tool of this name, or else a call of an MCP server. */
export function builtInItem(part: ProviderCallPart, result?: ProviderResultPart): OutputItem {
  const { callId: id, name, server, input, meta } = part;
  const status = result ? result.status === "ok" ? "completed" : "failed" : "in_progress";
  const own = providerItem(isObject(meta) ? meta : {}, result); // as OpenAI made it
  if (typeof own?.type === "string") return { ...own, type: own.type, status };
  const output = result?.output ?? null;
  const fields = isObject(input) ? input : {};
  const { query = "", queries = [query] } = fields;
  const item = { id, status };
  if (name === "web_search" && server === undefined) {
    return { ...item, type: "web_search_call", action: fields.type ? fields : { type: "search", queries } };
  }
  if (name === "file_search" && server === undefined) {
    return { ...item, type: "file_search_call", queries, results: Array.isArray(output) ? output : null };
  }
  if (name === "code_execution" && server === undefined) {
    const code = typeof fields.code === "string" && fields.code !== "" ? fields.code : JSON.stringify(input);
    const outputs = Array.isArray(output) ? output : result && [{ type: "logs", logs: textOf(output) }];
    return { ...item, type: "code_interpreter_call", code, container_id: "", outputs: outputs ?? null };
  }
  const failed = result?.status === "error";
  return {
    ...item,
    type: "mcp_call",
    server_label: server ?? "provider",
    name,
    arguments: JSON.stringify(input),
    output: result && !failed ? textOf(output) : null,
    error: failed ? textOf(output) : null,
  };
}

function textOf(output: Json): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}
