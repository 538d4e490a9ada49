/**
 * The model port: what the engine asks of a model, and what it hears from one.
 *
 * @module
 */
import type { FinishReason } from "../protocol/event.ts";
import type { Json, Message, Usage } from "../protocol/message.ts";

/** A tool as the model is told of it. */
export interface ToolDefinition {
  /** What the model calls it. */
  readonly name: string;
  /** What it does and when to use it. */
  readonly description: string;
  /** JSON Schema of the input, draft 2020-12. */
  readonly schema: { readonly [key: string]: unknown };
}

/** What a provider may be told beside the messages. */
export interface ModelOptions {
  /** How freely it chooses its words; the provider says in which range. */
  readonly temperature?: number;
  /** The most tokens the answer may have. */
  readonly maxTokens?: number;
  /** JSON Schema that the final answer has to match. */
  readonly output?: { readonly [key: string]: unknown };
  /** Fields the provider knows and we do not, sent as they are. */
  readonly provider?: { readonly [key: string]: Json };
}

/** One request to a model. */
export interface ModelRequest {
  /** Who is asked. */
  readonly model: Model;
  /** What the model is told of its task. */
  readonly instructions: string;
  /** The conversation; always valid. */
  readonly messages: readonly Message[];
  /** What the model may use. */
  readonly tools: readonly ToolDefinition[];
  /** What the provider is told beside. */
  readonly options: ModelOptions;
}

/** A piece of a streamed response. */
export type ModelEvent =
  /** Text that goes on. A new part begins where the kind changes. */
  | { readonly type: "text"; readonly text: string }
  /** Thought that goes on; `meta` is kept with the part and sent back as it was. */
  | { readonly type: "reasoning"; readonly text: string; readonly meta?: Json }
  /** A call begins. */
  | { readonly type: "call.start"; readonly id: string; readonly name: string }
  /** Its input goes on, as JSON text. */
  | { readonly type: "call.delta"; readonly id: string; readonly text: string }
  /** Its input is complete: the JSON text of its deltas, or `input` where the provider sends a value. */
  | { readonly type: "call.end"; readonly id: string; readonly input?: unknown }
  /** The response is complete. A stream that ends without it was cut, and fails. */
  | { readonly type: "finish"; readonly reason: FinishReason; readonly usage?: Usage };

/** A language model. */
export interface Model {
  /** The name of the model, for events and records. */
  readonly id: string;
  /**
   * Asks once and streams the answer: one array for every read from the provider, so that what arrived together travels together.
   * Stops when `signal` aborts. Throws a {@linkcode ModelError} where the provider refuses or the stream is cut.
   */
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<readonly ModelEvent[]>;
}

/** What is known of a failed request. */
export interface ModelErrorOptions extends ErrorOptions {
  /** Whether the same request may succeed later. Default: false. */
  readonly recoverable?: boolean;
  /** How long the provider asks to wait, in milliseconds. */
  readonly retryAfter?: number;
  /** The HTTP status, where there was one. */
  readonly status?: number;
  /** The request was larger than the model's context. Default: false. */
  readonly overflow?: boolean;
}

/** A request that a provider refused, or a response that was cut. */
export class ModelError extends Error {
  /** The name of the class. */
  override readonly name = "ModelError";
  /** Whether the same request may succeed later. */
  readonly recoverable: boolean;
  /** How long the provider asks to wait, in milliseconds. */
  readonly retryAfter: number | undefined;
  /** The HTTP status, where there was one. */
  readonly status: number | undefined;
  /** The request was larger than the model's context. */
  readonly overflow: boolean;

  /** Says what could not be done, and whether trying again can help. */
  constructor(
    message: string,
    { recoverable = false, retryAfter, status, overflow = false, ...rest }: ModelErrorOptions = {},
  ) {
    super(message, rest);
    this.recoverable = recoverable;
    this.retryAfter = retryAfter;
    this.status = status;
    this.overflow = overflow;
  }
}
