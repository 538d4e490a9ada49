/**
 * Adapter for models of the AI SDK.
 *
 * @module
 */
import type { Model, ModelEvent, ModelRequest } from "../model.ts";
import type { AiSdkCall, AiSdkModel, AiSdkOptions } from "./ai_sdk_model.ts";
import { modelErrorOf } from "./error.ts";
import { callOf } from "./request.ts";
import { partParser } from "./response_parser.ts";

export type { AiSdkCall, AiSdkModel, AiSdkOptions };

/**
 * Creates a model from a language model of any AI SDK provider. The SDK itself is not loaded.
 *
 * - Text, reasoning, calls, files and token counts are converted both ways. Provider metadata of a part is stored and sent back to the same model.
 * - Tools that the provider runs, sources and generated files are left out.
 * - `output` becomes `responseFormat` if its schema fits the subset that every provider enforces.
 * - A rejected request or a cut stream throws a `ModelError`, which states whether and when to retry.
 *
 * ```ts
 * import { agent } from "@jizai/jizai";
 * import { aiSdk } from "@jizai/jizai/model/ai_sdk";
 * import { assertEquals } from "@std/assert";
 *
 * const given = { // such as `createGroq()("llama-3.3-70b-versatile")`
 *   specificationVersion: "v4",
 *   modelId: "given",
 *   doStream: () =>
 *     Promise.resolve({
 *       stream: ReadableStream.from([
 *         { type: "text-start", id: "1" },
 *         { type: "text-delta", id: "1", delta: "Hello!" },
 *         { type: "text-end", id: "1" },
 *         { type: "finish", finishReason: { unified: "stop" }, usage: { inputTokens: {}, outputTokens: {} } },
 *       ]),
 *     }),
 * };
 * const { text } = await agent({ model: aiSdk(given) }).run("Hi").result;
 * assertEquals(text, "Hello!");
 * ```
 */
export function aiSdk(model: AiSdkModel, options: AiSdkOptions = {}): Model {
  const { modelId: id } = model;

  async function* stream(
    request: ModelRequest,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<readonly ModelEvent[]> {
    let streaming = false;
    try {
      const { stream } = await model.doStream({ ...callOf(request, model, options), abortSignal: signal });
      streaming = true;
      const parse = partParser(id);
      for await (const part of stream) {
        const events = parse(part);
        if (events.length > 0) yield events;
      }
    } catch (error) {
      throw signal.aborted ? signal.reason : modelErrorOf(error, id, streaming);
    }
  }

  return { id, stream };
}
