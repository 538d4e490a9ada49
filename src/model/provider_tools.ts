/**
 * Tools that providers run: their declarations in a request, and the text that replaces their calls and results for another provider.
 *
 * @module
 */
import type { ProviderCallPart, ProviderResultPart } from "../protocol/part.ts";
import type { UnknownObject } from "../protocol/shape.ts";
import type { ModelRequest, ProviderApi } from "./model.ts";
import { optionError } from "./request.ts";

/** The result of a call that the engine has allowed, and that the provider runs then. */
export const approved = "Approved.";

/** A request whose tools are those that the agent runs, and the declarations of those that the provider runs. */
export interface SplitRequest {
  /** The request without the tools that the provider runs. */
  readonly request: ModelRequest;
  /** The entries among the tools. */
  readonly builtIn: readonly UnknownObject[];
  /** Further fields of the request. */
  readonly fields: UnknownObject;
  /** Headers of the request. */
  readonly headers: Headers;
}

/** Splits a request for an API. Throws a `ModelError` that names the adapters of a tool that the API does not run. */
export function splitTools(request: ModelRequest, api: ProviderApi, model: string, headers: Headers): SplitRequest {
  const { tools, options, options: { toolChoice } } = request;
  if (!tools.some(({ provider }) => provider)) return { request, builtIn: [], fields: {}, headers };
  const builtIn: UnknownObject[] = [];
  const plainRequest = { ...request, tools: tools.filter(({ provider }) => !provider) };
  const split = { request: plainRequest, builtIn, fields: {}, headers: new Headers(headers) };
  const isFunctionChoice = /^(gemini|openai)$/.test(api); // the API applies the choice only to tools that the agent runs
  for (const { name, provider } of tools) {
    if (!provider || (isFunctionChoice && toolChoice === "none")) continue;
    const { tool, fields = {}, headers = {}, choice, asked } = provider.apis[api] ?? {};
    const others = Object.keys(provider.apis).join(", ") || "none";
    if (!provider.apis[api]) throw optionError(model, `${api} does not run "${name}"; expected one of: ${others}`);
    if (tool) builtIn.push(provider.ask ? { ...tool, ...asked } : tool);
    split.fields = joinFields(split.fields, fields);
    for (const [name, value] of Object.entries(headers)) split.headers.append(name, value);
    if (typeof toolChoice !== "object" || toolChoice.tool !== name) continue;
    if (!choice) throw optionError(model, `${api} cannot force a call of "${name}"`);
    split.fields = joinFields(split.fields, choice);
    split.request = { ...plainRequest, options: { ...options, toolChoice: "auto" } };
  }
  if (plainRequest.tools.length > 0 || (toolChoice !== "none" && toolChoice !== "required")) return split;
  if (isFunctionChoice && toolChoice === "required") throw optionError(model, `${api} cannot force its own tools`);
  if (api === "anthropic") split.fields = joinFields(split.fields, { tool_choice: choices[toolChoice] });
  return split;
}

/** The choices of the messages API, which the adapter sends only with tools that the agent runs. */
const choices = { none: { type: "none" }, required: { type: "any" } };

/** Merges fields of a request. Arrays are joined. */
export function joinFields(fields: UnknownObject, more: UnknownObject): UnknownObject {
  const joined = { ...fields };
  for (const [name, value] of Object.entries(more)) {
    const before = joined[name];
    joined[name] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
  }
  return joined;
}

/** The number of characters of an output that another provider receives. */
const limit = 4_000;

/** Returns the text that replaces a call or a result for another provider. Data that only its own provider can read is left out. */
export function providerNotice(part: ProviderCallPart | ProviderResultPart): string {
  const isCall = part.type === "provider_call";
  const json = JSON.stringify(
    isCall ? part.input : part.output,
    (key, value) => key.startsWith("encrypted_") ? undefined : value,
  );
  const text = json.length > limit ? `${json.slice(0, limit).toWellFormed()}…` : json;
  return isCall ? `[You called ${part.name} with ${text}]` : `[${part.name} returned ${text}]`;
}
