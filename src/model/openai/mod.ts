/**
 * OpenAI's chat completions, and everything that is compatible with them.
 *
 * @module
 */
import type { Fields } from "../fields.ts";
import type { Model } from "../model.ts";
import { ask, bodyOf, provider, type ProviderOptions } from "../provider.ts";
import { answer } from "./answer.ts";
import { obliging } from "./effort.ts";
import { requestOf } from "./request.ts";

export type { ProviderOptions } from "../provider.ts";

/**
 * A model of OpenAI, or one behind an API that is compatible: Ollama, vLLM, llama.cpp, Groq, OpenRouter, Workers AI, Gemini and others, each at its
 * `baseURL`, such as `http://localhost:11434/v1`.
 *
 * Thought that a server streams is heard, kept, and sent back to the same model. Images, PDFs and recordings go along; what a tool gives of them follows
 * its results as a message of the user. An `output` is asked for as `response_format`, except beside tools where the server is not OpenAI's own: few of
 * the others can do both. Newer models of OpenAI take tools over this API only where they may not reason; where they say so, they are asked again that
 * way. A refusal or a cut is a `ModelError`, which says whether and when to try again, for `retry` and `fallback`.
 *
 * Throws a `TypeError` where `baseURL` is no URL, or where the key or a header has a character that cannot be sent.
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
 *   fetch: () => new Response(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")), // leave it out to ask OpenAI
 * });
 * const { text } = await agent({ model }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function openai(options: ProviderOptions): Model {
  const { model, apiKey, maxTokens, temperature } = options;
  const server = provider(options, {
    base: "https://api.openai.com/v1",
    path: "/chat/completions",
    own: apiKey ? { authorization: `Bearer ${apiKey}` } : {},
  });
  const own = /(^|\.)openai\.(com|azure\.com)$/.test(new URL(server.url).hostname);
  const oblige = obliging();
  return {
    id: model,
    stream(request, { signal }) {
      const fields = {
        ...requestOf(request, model, own),
        temperature: request.options.temperature ?? temperature,
        [own ? "max_completion_tokens" : "max_tokens"]: request.options.maxTokens ?? maxTokens,
      };
      const asking = (more: Fields) => {
        return ask(server, bodyOf(fields, more, options.options, request.options.provider), answer(model), signal);
      };
      return own && request.tools.length > 0 ? oblige(asking) : asking({});
    },
  };
}
