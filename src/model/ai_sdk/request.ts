/**
 * Converts requests to calls of the AI SDK, and declares the part of its interface that the adapter uses.
 *
 * @module
 */
import type { ModelRequest } from "../model.ts";
import { providerNotice, splitTools } from "../provider_tools.ts";
import { callInput, checkOptions, fileNotice, optionValue, strictSchema, toolSchema } from "../request.ts";
import { type CallResult, type Message, textOf } from "../../protocol/message.ts";
import type {
  AnswerPart,
  ContentPart,
  Json,
  MediaPart,
  ProviderCallPart,
  ProviderResultPart,
  TextPart,
} from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";

// The part of the AI SDK's language model interface that the adapter uses, declared here so that the SDK is not a dependency.

/** A language model of an AI SDK provider, of specification v4, v3 or v2. */
export interface AiSdkModel {
  /** The version of the specification, such as `v4`. */
  readonly specificationVersion: string;
  /** The name of the model. */
  readonly modelId: string;
  /** The name of the provider in the SDK, such as `openai.chat`. */
  readonly provider?: string;
  /** Sends a request and streams the response. */
  doStream(call: AiSdkCall): PromiseLike<AiSdkResponse>;
}

/** The response of such a model. */
export interface AiSdkResponse {
  /** The parts of the response. */
  readonly stream: ReadableStream<unknown>;
  /** The HTTP response, if there was one. */
  readonly response?: { readonly headers?: unknown };
}

/** A request to such a model. */
export interface AiSdkCall {
  /** The conversation, in the form of the model's specification. */
  readonly prompt: readonly unknown[];
  /** Aborts the request. */
  readonly abortSignal?: AbortSignal;
}

/** Options of `aiSdk()`. */
export interface AiSdkOptions {
  /** Maximum number of tokens in a response, if the request sets none. Default: the provider's. */
  readonly maxTokens?: number;
  /** Sampling temperature, if the request sets none. Default: the provider's. */
  readonly temperature?: number;
  /** Provider-specific options, by provider. Default: none. */
  readonly providerOptions?: { readonly [provider: string]: { readonly [name: string]: Json } };
}

// Converts the options of requests to fields of calls of the AI SDK.

/** The levels of specification v4. */
const efforts = { none: "none", minimal: "minimal", low: "low", medium: "medium", high: "high", xhigh: "xhigh" };

/** Returns the fields of the options. The SDK leaves parallel calls and caching to `providerOptions`, and before v4 effort too. */
function optionFields(request: ModelRequest, model: string, version: string): UnknownObject {
  const unsupported = ["parallelCalls", "cache", "logprobs", ...(version === "v4" ? [] : ["effort"] as const)] as const;
  checkOptions(request, { model, api: `the AI SDK (${version})`, unsupported });
  const { tools, options: { toolChoice, stop, seed, effort } } = request;
  return {
    ...(stop && { stopSequences: stop }),
    ...(seed !== undefined && { seed }),
    ...(effort && { reasoning: optionValue(model, "effort", effort, efforts) }),
    ...(toolChoice && tools.length > 0 && {
      toolChoice: typeof toolChoice === "object" ? { type: "tool", toolName: toolChoice.tool } : { type: toolChoice },
    }),
  };
}

// The call of a request: its messages, tools and options.

/** Converts a request to a call, in the form of the model's specification. */
export function callOf(
  modelRequest: ModelRequest,
  { modelId, specificationVersion }: AiSdkModel,
  { maxTokens, temperature, providerOptions }: AiSdkOptions,
): AiSdkCall {
  const { request, builtIn, fields, headers } = splitTools(modelRequest, "ai_sdk", modelId, new Headers());
  const { instructions, messages, tools, options } = request;
  const system = instructions === "" ? [] : [{ role: "system", content: instructions }];
  const schema = strictSchema(options.output);
  const call = {
    prompt: [...system, ...messages.flatMap((message) => messagesOf(message, modelId, specificationVersion))],
    maxOutputTokens: options.maxTokens ?? maxTokens,
    temperature: options.temperature ?? temperature,
    providerOptions: { ...providerOptions, ...options.provider },
    ...optionFields(request, modelId, specificationVersion),
    ...(tools.length + builtIn.length > 0 && {
      tools: [
        ...builtIn,
        ...tools.map((tool) => ({
          type: "function",
          name: tool.name,
          description: tool.description,
          inputSchema: toolSchema(tool),
        })),
      ],
    }),
    ...fields,
    ...([...headers].length > 0 && { headers: Object.fromEntries(headers) }),
    ...(schema?.type === "object" && { responseFormat: { type: "json", name: "output", schema } }),
  };
  return call;
}

function messagesOf(message: Message, modelId: string, version: string): readonly UnknownObject[] {
  switch (message.role) {
    case "user": {
      const content = message.parts.map((part) => part.type === "text" ? textPart(part) : fileOf(part, version));
      return [{ role: "user", content }];
    }
    case "assistant": {
      const content = assistantParts(message.parts, modelId, version);
      return content.length > 0 ? [{ role: "assistant", content }] : [];
    }
    case "tool":
      return [{ role: "tool", content: message.results.map((result) => resultOf(result, version)) }];
  }
}

function textPart({ text }: TextPart): UnknownObject {
  return { type: "text", text };
}

/** Converts what the model wrote, with the provider metadata that came from the same model. */
function assistantParts(parts: readonly AnswerPart[], modelId: string, version: string): readonly UnknownObject[] {
  const content: UnknownObject[] = [];
  let next: UnknownObject = {};
  for (const part of parts) {
    if (part.type === "reasoning") {
      const { model, options, next: noted } = isObject(part.meta) ? part.meta : {};
      if (model !== modelId) continue;
      const providerFields = options === undefined ? {} : { providerOptions: options };
      if (noted) next = { providerOptions: noted };
      else content.push({ type: "reasoning", text: part.text, ...providerFields });
      continue;
    }
    if (part.type === "source" || part.type === "refusal" || part.type === "logprobs") continue;
    if (part.type === "media") {
      content.push(fileOf(part, version));
      continue;
    }
    if (part.type === "provider_call" || part.type === "provider_result") {
      content.push(providerPart(part, modelId));
      continue;
    }
    content.push(
      part.type === "text"
        ? { ...textPart(part), ...next }
        : { type: "tool-call", toolCallId: part.id, toolName: part.name, input: callInput(part), ...next },
    );
    next = {};
  }
  return content;
}

/** Converts a call that the provider ran, or its result: as it came for the same model, and as text for another. */
function providerPart(part: ProviderCallPart | ProviderResultPart, modelId: string): UnknownObject {
  const { model, toolName, options } = isObject(part.meta) ? part.meta : {};
  if (model !== modelId) return { type: "text", text: providerNotice(part) };
  const callFields = { toolCallId: part.callId, toolName, ...(options !== undefined && { providerOptions: options }) };
  if (part.type === "provider_call") {
    return { type: "tool-call", ...callFields, input: part.input, providerExecuted: true };
  }
  const type = part.status === "ok" ? "json" : "error-json";
  return { type: "tool-result", ...callFields, output: { type, value: part.output } };
}

function resultOf(result: CallResult, version: string): UnknownObject {
  const { callId, name, status, parts } = result;
  const value = parts.some(({ type }) => type === "media")
    ? parts.map((part) => resultPart(part, version))
    : textOf(result);
  const type = typeof value !== "string" ? "content" : status === "ok" ? "text" : "error-text";
  return { type: "tool-result", toolCallId: callId, toolName: name, output: { type, value } };
}

function fileOf({ mediaType, data, url }: MediaPart, version: string): UnknownObject {
  const at = url === undefined ? data : new URL(url);
  if (version !== "v4") return { type: "file", mediaType, data: at };
  return { type: "file", mediaType, data: url === undefined ? { type: "data", data: at } : { type: "url", url: at } };
}

/** Converts a part of a result. */
function resultPart(part: ContentPart, version: string): UnknownObject {
  if (part.type === "text") return textPart(part);
  const { mediaType, data, url } = part;
  if (version === "v4") return fileOf(part, version);
  if (version === "v2") {
    return data === undefined ? { type: "text", text: fileNotice(part) } : { type: "media", mediaType, data };
  }
  const kind = mediaType.startsWith("image/") ? "image" : "file";
  return url === undefined ? { type: `${kind}-data`, mediaType, data } : { type: `${kind}-url`, url };
}
