/**
 * What is asked of a model of the AI SDK: said here as types, so that nothing is imported.
 *
 * @module
 */
import type { Json } from "../../protocol/message.ts";

/** A language model as the providers of the AI SDK make it, of specification v4, v3 or v2: so much of it as is used here. */
export interface AiSdkModel {
  /** The specification that it follows. */
  readonly specificationVersion: string;
  /** Its name. */
  readonly modelId: string;
  /** Asks it. */
  doStream(call: AiSdkCall): PromiseLike<{ readonly stream: ReadableStream<unknown> }>;
}

/** What such a model is asked. */
export interface AiSdkCall {
  /** The conversation, in the words of the model's specification. */
  readonly prompt: readonly unknown[];
  /** Aborts it. */
  readonly abortSignal?: AbortSignal;
}

/** What `aiSdk()` takes. */
export interface AiSdkOptions {
  /** The most tokens an answer may have, where the request does not say. Default: as the provider has it. */
  readonly maxTokens?: number;
  /** How freely the model chooses its words, where the request does not say. Default: as the provider has it. */
  readonly temperature?: number;
  /** Options that the provider knows and we do not, under its name. Default: none. */
  readonly providerOptions?: { readonly [provider: string]: { readonly [name: string]: Json } };
}
