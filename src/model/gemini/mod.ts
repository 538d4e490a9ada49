/**
 * Adapter for the Gemini API.
 *
 * @module
 */
import { requestFields } from "./request.ts";
import { responseParser } from "./response_parser.ts";
import type { Model, ModelEffort, ModelRequest } from "../model.ts";
import { provider, type ProviderOptions, requestBody, streamResponse } from "../provider.ts";
import { joinFields, splitTools } from "../provider_tools.ts";
import { checkOptions, optionError, optionValue, toolSchema } from "../request.ts";
import type { UnknownObject } from "../../protocol/shape.ts";
export type { ProviderOptions } from "../provider.ts";

// Converts the options of requests to fields of `generateContent`.

/** Returns the part of `generationConfig` that the options set. `thoughts` requests summaries of the reasoning. */
function generationOptions(request: ModelRequest, model: string, thoughts: boolean): UnknownObject {
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
function toolOptions(
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

// The adapter: a model behind Gemini's generateContent.

/** Options of `gemini()`. */
export interface GeminiOptions extends ProviderOptions {
  /** Whether summaries of the reasoning are requested and streamed. Default: false. */
  readonly thoughts?: boolean;
}

/**
 * Creates a model that is reached over the Gemini API (`streamGenerateContent`).
 *
 * - Thought signatures, generated files and the parts of built-in tools are kept with the conversation and sent back to the same model. Grounding metadata is
 *   kept too.
 * - Files of all types are sent inline, or by address. Files among the results of tools follow the results.
 * - `generationConfig` among the `options` is merged with the adapter's own.
 * - A rejected request, an invalid call or a cut stream throws a `ModelError`, which states whether and when to retry. A blocked prompt or response ends with
 *   the finish reason `filter`.
 * - `src/model/README.md` lists the servers whose forms it was tried in, and what is not supported.
 *
 * Throws a `TypeError` if `baseURL` is not an http(s) address, or if the key or a header contains an invalid character.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { gemini } from "@jizai/jizai/model/gemini";
 * import { assertEquals } from "@std/assert";
 *
 * const chunks = [
 *   { candidates: [{ content: { role: "model", parts: [{ text: "Hel" }] } }] },
 *   { candidates: [{ content: { role: "model", parts: [{ text: "lo!" }] }, finishReason: "STOP" }] },
 * ];
 * const model = gemini({
 *   model: "gemini-3.8-flash",
 *   apiKey: "AIza...",
 *   fetch: () => new Response(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")), // leave it out to reach Google
 * });
 * const { text } = await agent({ model }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function gemini({ thoughts = false, ...options }: GeminiOptions): Model {
  const { model, apiKey, maxTokens, temperature } = options;
  const server = provider(options, {
    name: "gemini",
    provider: "gcp.gemini",
    options: ["thoughts"],
    base: "https://generativelanguage.googleapis.com/v1beta",
    path: `/models/${model}:streamGenerateContent`,
    query: { alt: "sse" },
    adapterHeaders: apiKey ? { "x-goog-api-key": apiKey } : {},
  });
  return {
    id: model,
    server: server.origin,
    stream(modelRequest, { signal }) {
      const split = splitTools(modelRequest, "gemini", model, server.headers);
      const { request, builtIn } = split;
      const { output, provider: more } = request.options;
      const layers: readonly UnknownObject[] = [options.options ?? {}, more ?? {}];
      const hasTools = request.tools.length + builtIn.length > 0;
      const generationConfig = Object.assign(
        {
          temperature: request.options.temperature ?? temperature,
          maxOutputTokens: request.options.maxTokens ?? maxTokens,
          ...generationOptions(request, model, thoughts),
          // models before Gemini 3 reject a schema beside tools
          ...(output && !(hasTools && /^gemini-[12]/.test(model)) && {
            responseMimeType: "application/json",
            responseJsonSchema: toolSchema({ schema: output }),
          }),
        },
        ...layers.map((layer) => layer.generationConfig),
      );
      const fields = {
        ...requestFields(request, model, builtIn),
        ...toolOptions(request, split.builtIn.length > 0, model),
      };
      return streamResponse(
        { ...server, headers: split.headers },
        requestBody(joinFields(fields, split.fields), ...layers, { generationConfig }),
        responseParser(model),
        signal,
      );
    },
  };
}
