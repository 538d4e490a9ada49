/**
 * Anthropic's messages API.
 *
 * @module
 */
import type { Model } from "../model.ts";
import { ask, bodyOf, provider, type ProviderOptions } from "../provider.ts";
import { answer } from "./answer.ts";
import { requestOf } from "./request.ts";

export type { ProviderOptions } from "../provider.ts";

/** What `anthropic()` takes. */
export interface AnthropicOptions extends ProviderOptions {
  /** The most tokens an answer may have, where the request does not say. Default: 32,000. */
  readonly maxTokens?: number;
  /** How long the provider remembers the instructions, the tools and the conversation so far, to read them at a tenth of the price. Default: "5m". */
  readonly cache?: "5m" | "1h" | false;
}

/**
 * A model of Anthropic, or one behind an API that is compatible, at its `baseURL`.
 *
 * Thought is kept with its signature, and sent back as it was; `options: { thinking: { ... } }` asks for it where the model does not think unasked. Images
 * and PDFs go along, also with results. An `output` is asked for as `output_config` where its schema can be said in the words that the provider knows. A
 * refusal or a cut is a `ModelError`, which says whether and when to try again, for `retry` and `fallback`.
 *
 * Throws a `TypeError` where `baseURL` is no URL, or where the key or a header has a character that cannot be sent.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { anthropic } from "@jizai/jizai/model/anthropic";
 * import { assertEquals } from "@std/assert";
 *
 * const events = [
 *   { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
 *   { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello!" } },
 *   { type: "content_block_stop", index: 0 },
 *   { type: "message_delta", delta: { stop_reason: "end_turn" } },
 * ];
 * const model = anthropic({
 *   model: "claude-sonnet-5",
 *   apiKey: "sk-ant-...",
 *   fetch: () => new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")), // leave it out to ask Anthropic
 * });
 * const { text } = await agent({ model }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function anthropic({ cache = "5m", ...options }: AnthropicOptions): Model {
  const { model, apiKey, maxTokens = 32_000, temperature } = options;
  const server = provider(options, {
    base: "https://api.anthropic.com",
    path: "/v1/messages",
    own: { "anthropic-version": "2023-06-01", ...(apiKey && { "x-api-key": apiKey }) },
  });
  const mark = cache ? { cache_control: { type: "ephemeral", ...(cache === "1h" && { ttl: cache }) } } : {};
  return {
    id: model,
    stream(request, { signal }) {
      const fields = {
        ...requestOf(request, model, mark),
        max_tokens: request.options.maxTokens ?? maxTokens,
        temperature: request.options.temperature ?? temperature,
      };
      return ask(server, bodyOf(fields, options.options, request.options.provider), answer(), signal);
    },
  };
}
