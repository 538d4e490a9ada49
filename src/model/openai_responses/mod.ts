/**
 * Adapter for OpenAI's Responses API.
 *
 * @module
 */
import type { Json } from "../../protocol/part.ts";
import type { Model } from "../model.ts";
import { provider, type ProviderOptions, requestBody, streamResponse } from "../provider.ts";
import { joinFields, splitTools } from "../provider_tools.ts";
import { optionFields } from "./option_fields.ts";
import { defers, requestFields } from "./request.ts";
import { responseParser } from "./response_parser.ts";

export type { ProviderOptions } from "../provider.ts";

/** Options of `openaiResponses()`. */
export interface OpenAIResponsesOptions extends ProviderOptions {
  /** Tools that the provider runs, such as `{ type: "web_search" }`. Default: none. */
  readonly builtInTools?: readonly { readonly [name: string]: Json }[];
  /** Requests summaries of the reasoning, which are streamed as reasoning. Default: none. */
  readonly summary?: "auto" | "concise" | "detailed";
}

/**
 * Creates a model that is reached over OpenAI's Responses API, or over a compatible API at `baseURL`.
 *
 * - The provider stores nothing (`store: false`). Reasoning items, encrypted by the provider, and the items of tools that it runs are kept with the
 *   conversation and sent back to the same model. It asks before it calls a remote MCP server if the agent has guards.
 * - Images and PDFs are sent, also in the results of tools.
 * - A refusal is streamed as text and ends with the finish reason `refusal`.
 * - A rejected request, a failed response or a cut stream throws a `ModelError`, which states whether and when to retry.
 * - `src/model/README.md` lists the servers whose forms it was tried in, and what is not supported.
 *
 * Throws a `TypeError` if `baseURL` is not an http(s) address, or if the key or a header contains an invalid character.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { openaiResponses } from "@jizai/jizai/model/openai_responses";
 * import { assertEquals } from "@std/assert";
 *
 * const events = [
 *   { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "msg_1", content: [] } },
 *   { type: "response.output_text.delta", output_index: 0, delta: "Hello!" },
 *   { type: "response.output_item.done", output_index: 0, item: { type: "message", id: "msg_1" } },
 *   { type: "response.completed", response: { usage: { input_tokens: 9, output_tokens: 2 } } },
 * ];
 * const model = openaiResponses({
 *   model: "gpt-6.1-terra",
 *   apiKey: "sk-...",
 *   fetch: () => new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")), // leave it out to reach OpenAI
 * });
 * const { text } = await agent({ model }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function openaiResponses({ builtInTools = [], summary, ...options }: OpenAIResponsesOptions): Model {
  const { model, apiKey, maxTokens, temperature } = options;
  const server = provider(options, {
    name: "openaiResponses",
    options: ["builtInTools", "summary"],
    base: "https://api.openai.com/v1",
    path: "/responses",
    own: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
  });
  return {
    id: model,
    asks: ["mcp"],
    defers: defers(model),
    stream(request, { signal }) {
      const split = splitTools(request, "openai_responses", model, server.headers);
      const fields = {
        ...requestFields(split.request, model, [...builtInTools, ...split.builtIn]),
        ...optionFields(split.request, model, summary),
        temperature: request.options.temperature ?? temperature,
        max_output_tokens: request.options.maxTokens ?? maxTokens,
      };
      const include = request.options.logprobs === undefined ? {} : { include: ["message.output_text.logprobs"] };
      const body = requestBody(
        joinFields(joinFields(fields, split.fields), include),
        options.options,
        request.options.provider,
      );
      return streamResponse({ ...server, headers: split.headers }, body, responseParser(model, server.errors), signal);
    },
  };
}
