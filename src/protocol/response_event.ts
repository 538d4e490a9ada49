/**
 * Events of one model request and its streamed response.
 *
 * @module
 */
import type { Usage } from "./message.ts";
import type { OutputChange } from "./output.ts";
import type { AddedPart, Call, ProviderCallPart, ProviderResultPart } from "./part.ts";

/**
 * The reason why a response ended:
 *
 * - `stop`: the model was done
 * - `calls`: it made calls
 * - `length`: the response reached the limit of its tokens, or the model's context was full
 * - `filter`: a filter of the provider, or a check, stopped it
 * - `refusal`: the model refused
 * - `empty`: it ended by itself without text, file or call
 * - `other`: the provider gave another reason
 *
 * After `filter` and `refusal`, no call of the response runs. After these and `length` and `other`, calls may be incomplete: they do not run.
 */
export type FinishReason = "stop" | "calls" | "length" | "filter" | "refusal" | "empty" | "other";

/** A piece of a text, a reasoning text or the input of a call. A filter may drop only these three, `part.added`, `provider_tool.*`, `output.delta`, `tool.progress`, `notice` and `data`. */
export type DeltaEvent =
  | { readonly type: "text.delta"; readonly turn: number; readonly part: number; readonly text: string }
  | { readonly type: "reasoning.delta"; readonly turn: number; readonly part: number; readonly text: string }
  | {
    readonly type: "call.delta";
    readonly turn: number;
    readonly call: string;
    readonly name: string;
    readonly text: string;
  };

/** Events of one model request and its streamed response. */
export type ResponseEvent =
  | DeltaEvent
  | { readonly type: "model.started"; readonly turn: number; readonly model: string }
  | { readonly type: "model.reset"; readonly turn: number }
  /** Changes of the partial value of the structured output, derived from the deltas of the text. */
  | { readonly type: "output.delta"; readonly turn: number; readonly changes: readonly OutputChange[] }
  /** A part of the answer that is complete at once, such as a generated file or a source. */
  | {
    readonly type: "part.added";
    readonly turn: number;
    readonly part: number;
    readonly content: Exclude<AddedPart, ProviderCallPart | ProviderResultPart>;
  }
  /** The provider of the model runs a call itself. */
  | {
    readonly type: "provider_tool.started";
    readonly turn: number;
    readonly part: number;
    readonly content: ProviderCallPart;
  }
  /** The provider has run the call. The event is missing if the response ended before. */
  | {
    readonly type: "provider_tool.finished";
    readonly turn: number;
    readonly part: number;
    readonly content: ProviderResultPart;
  }
  | { readonly type: "call.ready"; readonly turn: number; readonly call: Call }
  | {
    readonly type: "model.finished";
    readonly turn: number;
    readonly finish: FinishReason;
    readonly usage: Usage;
    readonly attempts: number;
    /** The final text, where it differs from the deltas. */
    readonly text?: string;
  };
