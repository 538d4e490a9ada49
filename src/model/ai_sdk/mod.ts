/**
 * Adapter for models of the AI SDK.
 *
 * @module
 */
import { type AiSdkCall, type AiSdkModel, type AiSdkOptions, type AiSdkResponse, callOf } from "./request.ts";
import { headersOf, modelErrorOf, partParser } from "./response_parser.ts";
import type { Model, ModelEvent, ModelRequest } from "../model.ts";
import { isPage, providerErrors } from "../provider_error.ts";
import { wholeCharacters } from "../response.ts";
import { expectNames } from "../../protocol/shape.ts";

// Replaces lone surrogates, which providers reject.

/** Copies plain data with every lone surrogate replaced. Instances of classes, such as URLs, stay the same. */
function wellFormed<T>(value: T): T;
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.isWellFormed() ? value : value.toWellFormed();
  if (Array.isArray(value)) return value.map((each) => wellFormed(each));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, wellFormed(each)]));
}

export type { AiSdkCall, AiSdkModel, AiSdkOptions, AiSdkResponse };

// The adapter: a model of the AI SDK as a model of agents.

/** The names of providers in the OpenTelemetry conventions, where the SDK has others. */
const providerNames: readonly (readonly [prefix: string, name: string])[] = [
  ["amazon-bedrock", "aws.bedrock"],
  ["azure", "azure.ai.openai"],
  ["google.vertex", "gcp.vertex_ai"],
  ["vertex", "gcp.vertex_ai"],
  ["google", "gcp.gemini"],
  ["mistral", "mistral_ai"],
  ["moonshotai", "moonshot_ai"],
  ["xai", "x_ai"],
];

/** Returns the name of the provider that the SDK names with its API, such as `openai.chat`. */
function providerOf(sdkName: string): string {
  const [, name] = providerNames.find(([prefix]) => sdkName.startsWith(prefix)) ?? [];
  return name ?? sdkName.split(".")[0] ?? sdkName;
}

/**
 * Creates a model from a language model of an AI SDK provider. The SDK itself is not loaded.
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
  expectNames("Cannot create aiSdk()", options, ["maxTokens", "temperature", "providerOptions"]);
  const { modelId: id, provider } = model;

  async function* stream(
    request: ModelRequest,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<readonly ModelEvent[]> {
    let response: AiSdkResponse | undefined;
    let isEmpty = true;
    try {
      response = await model.doStream({ ...wellFormed(callOf(request, model, options)), abortSignal: signal });
      const parse = partParser(id);
      const whole = wholeCharacters();
      for await (const part of response.stream) {
        const events = parse(part);
        if (events.length === 0) continue;
        isEmpty = false;
        yield whole(events);
      }
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const headers = headersOf(response?.response?.headers);
      // the SDK reads a page or a JSON value as a stream without parts
      if (isEmpty && isPage(headers)) {
        throw providerErrors(id, []).withoutEvents({ headers });
      }
      throw modelErrorOf(error, id, response !== undefined);
    }
  }

  return { id, ...(provider && { server: { provider: providerOf(provider) } }), stream };
}
