/**
 * Adapter for OpenAI's chat completions and compatible APIs.
 *
 * @module
 */
import { type Model, ModelError, type ModelEvent, type ModelRequest } from "../model.ts";
import { requestFields } from "./request.ts";
import { responseParser } from "./response_parser.ts";
import { provider, type ProviderOptions, requestBody, streamResponse } from "../provider.ts";
import { joinFields, splitTools } from "../provider_tools.ts";
import { checkOptions, optionValue } from "../request.ts";
import type { UnknownObject } from "../../protocol/shape.ts";
export type { ProviderOptions } from "../provider.ts";

// Converts the options of requests to fields of chat completions.

/** Returns the fields of the options. `isOpenAi` is true for OpenAI's servers, which alone have an option for caching. */
function optionFields(request: ModelRequest, model: string, isOpenAi: boolean): UnknownObject {
  const api = isOpenAi ? "chat completions" : "a compatible server";
  checkOptions(request, { model, api, unsupported: isOpenAi ? [] : ["cache"] });
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

// Fallback for OpenAI's newer models, which reject tools over chat completions unless reasoning is off.

/** Sends the request with additional fields. */
type Send = (more: UnknownObject) => AsyncIterable<readonly ModelEvent[]>;

/** Returns a function that sends a request again with reasoning off if the server demands it, and turns it off for all later requests. */
function reasoningFallback(): (send: Send) => AsyncGenerator<readonly ModelEvent[]> {
  let isOff = false;
  return async function* (send) {
    try {
      if (!isOff) return yield* send({});
    } catch (error) {
      if (!demandsNoReasoning(error)) throw error;
      isOff = true;
    }
    yield* send({ reasoning_effort: "none" });
  };
}

function demandsNoReasoning(error: unknown): boolean {
  return error instanceof ModelError && error.status === 400 && /reasoning_effort to 'none'/.test(error.message);
}

// The adapter: a model behind OpenAI's chat completions, or a compatible server.

/**
 * Creates a model that is reached over chat completions: OpenAI's own, or one of Ollama, vLLM, llama.cpp, Groq, OpenRouter and others at its `baseURL`,
 * such as `http://localhost:11434/v1`.
 *
 * - Reasoning that a server streams is stored and sent back to the same model, also if it is a part of the content, as with Mistral.
 * - Images, PDFs and recordings are sent. Files among the results of tools follow the results in a user message, since results hold only text.
 * - `output` becomes `response_format`. With tools, only OpenAI's own servers receive it: few others support both together.
 * - OpenAI's newer models reject tools over this API unless reasoning is off. If a model does, the request is sent again with `reasoning_effort: "none"`;
 *   `openai_responses` has no such limit.
 * - A refusal is streamed as text and ends with the finish reason `refusal`.
 * - A rejected request or a cut stream throws a `ModelError`, which states whether and when to retry.
 * - `src/model/README.md` lists the servers whose forms it was tried in, and what is not supported.
 *
 * Throws a `TypeError` if `baseURL` is not an http(s) address, or if the key or a header contains an invalid character.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { openai } from "@jizai/jizai/model/openai";
 * import { assertEquals } from "@std/assert";
 *
 * const chunks = [
 *   { choices: [{ delta: { content: "Hello!" } }] },
 *   { choices: [{ delta: {}, finish_reason: "stop" }] },
 * ];
 * const model = openai({
 *   model: "gpt-6.1-terra",
 *   apiKey: "sk-...",
 *   fetch: () => new Response(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")), // leave it out to reach OpenAI
 * });
 * const { text } = await agent({ model }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function openai(options: ProviderOptions): Model {
  const { model, apiKey, maxTokens, temperature } = options;
  const server = provider(options, {
    name: "openai",
    base: "https://api.openai.com/v1",
    path: "/chat/completions",
    adapterHeaders: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
  });
  const isOpenAi = /(^|\.)openai\.(com|azure\.com)$/.test(new URL(server.url).hostname);
  const fallback = reasoningFallback();
  return {
    id: model,
    server: server.origin,
    stream(modelRequest, { signal }) {
      const split = splitTools(modelRequest, "openai", model, server.headers);
      const { request } = split;
      const { effort } = request.options;
      const fields = {
        ...requestFields(request, model, isOpenAi),
        ...optionFields(request, model, isOpenAi),
        reasoning_effort: effort,
        temperature: request.options.temperature ?? temperature,
        [isOpenAi ? "max_completion_tokens" : "max_tokens"]: request.options.maxTokens ?? maxTokens,
      };
      const send = (more: UnknownObject) => {
        const body = requestBody(joinFields(fields, split.fields), more, options.options, request.options.provider);
        return streamResponse(
          { ...server, headers: split.headers },
          body,
          responseParser(model, server.errors),
          signal,
        );
      };
      return isOpenAi && request.tools.length > 0 && !effort ? fallback(send) : send({});
    },
  };
}
