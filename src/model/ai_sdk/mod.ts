/**
 * Models of the AI SDK.
 *
 * @module
 */
import type { Model, ModelEvent, ModelRequest } from "../model.ts";
import { answer } from "./answer.ts";
import type { AiSdkCall, AiSdkModel, AiSdkOptions } from "./call.ts";
import { failureOf } from "./failure.ts";
import { callOf } from "./request.ts";

export type { AiSdkCall, AiSdkModel, AiSdkOptions };

/**
 * A model of the AI SDK, from whichever of its providers. Nothing of the SDK itself is needed, and of it nothing is loaded.
 *
 * Text, thought, calls, files and tokens are mapped both ways, and what a provider notes with its parts is sent back to the same model. Its own tools,
 * sources and files among its answers are left out. An `output` is asked for where its schema can be said in the words that every provider knows. A
 * refusal or a cut is a `ModelError`, which says whether and when to try again, for `retry` and `fallback`.
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
    let answers = false;
    try {
      const { stream } = await model.doStream({ ...callOf(request, model, options), abortSignal: signal });
      answers = true;
      const read = answer(id);
      for await (const part of stream) {
        const events = read(part);
        if (events.length > 0) yield events;
      }
    } catch (error) {
      throw signal.aborted ? signal.reason : failureOf(error, id, answers);
    }
  }

  return { id, stream };
}
