/**
 * The part of the AI SDK's language model interface that the adapter uses, declared here so that the SDK is not a dependency.
 *
 * @module
 */
import type { Json } from "../../protocol/part.ts";

/** A language model of an AI SDK provider, of specification v4, v3 or v2. */
export interface AiSdkModel {
  /** The version of the specification, such as `v4`. */
  readonly specificationVersion: string;
  /** The name of the model. */
  readonly modelId: string;
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
