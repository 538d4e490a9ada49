/**
 * The model port: the interface between the engine and a language model.
 *
 * @module
 */
import { brand } from "../protocol/brand.ts";
import type { ContextEdit, FailureCode, FinishReason } from "../protocol/event.ts";
import type { Message, Usage } from "../protocol/message.ts";
import type { AddedPart, Json } from "../protocol/part.ts";

/** Describes a tool to the model. */
export interface ToolDefinition {
  /** The name the model calls it by. */
  readonly name: string;
  /** Tells the model what the tool does and when to use it. */
  readonly description: string;
  /** JSON Schema of the input, draft 2020-12. */
  readonly schema: { readonly [key: string]: unknown };
  /** The declaration of a tool that the provider runs. Undefined for a tool that the agent runs. */
  readonly provider?: ProviderTool;
  /** Whether the model sees the tool only once a search of the provider has found it. Models that do not `defer` ignore it. Default: false. */
  readonly deferred?: boolean;
  /** Entries that replace the definition, for APIs whose models know the tool, such as the memory tool of Anthropic. The agent runs its calls all the same. */
  readonly apis?: { readonly [api in ProviderApi]?: { readonly [name: string]: Json } };
}

/** An API of a provider, by the name of its adapter. */
export type ProviderApi = "ai_sdk" | "anthropic" | "gemini" | "openai" | "openai_responses";

/** A tool that the provider runs, as each API declares it. `providerTool()` makes it. */
export interface ProviderTool {
  /** The kind of the tool, such as `web_search`. */
  readonly type: string;
  /** The settings of the tool, without secrets, for the guards that decide about it. */
  readonly settings: { readonly [name: string]: Json };
  /** The declaration for each API that has such a tool. */
  readonly apis: { readonly [api in ProviderApi]?: ProviderDeclaration };
  /** Whether the provider must ask before it runs a call. The engine sets it for a model that `asks`. Default: false. */
  readonly ask?: boolean;
}

/** The declaration of a tool that the provider runs, for one API. */
export interface ProviderDeclaration {
  /** The entry among the tools of a request. */
  readonly tool?: { readonly [name: string]: Json };
  /** Further fields of the request. The arrays of several tools are joined. */
  readonly fields?: { readonly [name: string]: Json };
  /** Headers of the request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields of the request that force a call of the tool. */
  readonly choice?: { readonly [name: string]: Json };
  /** Fields of the entry that make the provider ask before it runs a call. */
  readonly asked?: { readonly [name: string]: Json };
}

/** The tools that a response may or must call: `auto` leaves it to the model, `required` forces a call, and `{ tool }` a call of that tool. */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string };

/** The effort of reasoning before an answer. Each provider supports some of these levels. */
export type ModelEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/**
 * Settings of a request beside its messages. A hook at `model` sets them per turn. An adapter throws a {@linkcode ModelError} for an option that its provider
 * lacks.
 */
export interface ModelOptions {
  /** Sampling temperature. The provider defines the range. */
  readonly temperature?: number;
  /** Maximum number of tokens in the response. */
  readonly maxTokens?: number;
  /** The tools that the response may or must call. Default: "auto". */
  readonly toolChoice?: ToolChoice;
  /** Whether one response may make several calls. Default: the provider's. */
  readonly parallelCalls?: boolean;
  /** Texts that end the response where the model writes them. */
  readonly stop?: readonly string[];
  /** Makes sampling repeatable, as far as the provider can. */
  readonly seed?: number;
  /** The effort of reasoning. Default: the provider's. */
  readonly effort?: ModelEffort;
  /** The time for which the provider caches the conversation: `short` is minutes, `long` is an hour or more. Default: the adapter's. */
  readonly cache?: "none" | "short" | "long";
  /** Requests the log probabilities of the tokens, with this number of alternatives for each. Default: none. */
  readonly logprobs?: number;
  /** JSON Schema that the final answer must match. */
  readonly output?: { readonly [key: string]: unknown };
  /** Fields added to the request body as they are, for settings this interface lacks. */
  readonly provider?: { readonly [key: string]: Json };
}

/** One request to a model. */
export interface ModelRequest {
  /** The model that receives the request. */
  readonly model: Model;
  /** The system prompt. */
  readonly instructions: string;
  /** The conversation. Each call in it has a result. */
  readonly messages: readonly Message[];
  /** The tools the model may call. */
  readonly tools: readonly ToolDefinition[];
  /** Settings of this request. */
  readonly options: ModelOptions;
}

/** One event of a streamed response. */
export type ModelEvent =
  /** Text to append. A new part begins where the type changes. */
  | { readonly type: "text"; readonly text: string }
  /** Reasoning to append. `meta` ends the part; it is stored with the part and sent back unchanged. */
  | { readonly type: "reasoning"; readonly text: string; readonly meta?: Json }
  /** A part that is complete at once, such as a generated file, a source, or a call that the provider runs. */
  | { readonly type: "part"; readonly part: AddedPart }
  /** A call begins. */
  | { readonly type: "call.start"; readonly id: string; readonly name: string }
  /** JSON text to append to the input of a call. */
  | { readonly type: "call.delta"; readonly id: string; readonly text: string }
  /**
   * The provider closed a call: its input is the JSON text of its deltas, `{}` without a text, or `input` if the provider sent a value. An adapter leaves the
   * event out for a call that the provider did not close, or closed only because the response reached its limit. Such a call runs only if its text is complete
   * JSON.
   */
  | { readonly type: "call.end"; readonly id: string; readonly input?: unknown }
  /** A part of the response that the adapter does not know and leaves out, for the operator. The run emits it as a `warning`. */
  | { readonly type: "warning"; readonly message: string }
  /** The response has ended. A stream that ends without this event was cut, and the request fails. It also fails if a call has no end and `reason` is "calls" or "stop". */
  | {
    readonly type: "finish";
    readonly reason: FinishReason;
    readonly usage?: Usage;
    /** The provider's id of the response, if it has one. */
    readonly id?: string;
    /** The changes of the conversation that the provider made before the model read it. Default: nothing. */
    readonly edits?: readonly ContextEdit[];
  };

/** A language model. */
export interface Model {
  /** The name of the model, for events and records. */
  readonly id: string;
  /** The server that answers, for telemetry: its provider, by the name of the OpenTelemetry conventions, and its address. Default: it is not known. */
  readonly server?: { readonly provider: string; readonly address?: string; readonly port?: number };
  /** The kinds of provider-run tools whose calls it can ask about before they run. Such a question is a call of the declared tool. Default: none. */
  readonly asks?: readonly string[];
  /** Whether its provider searches the `deferred` tools of a request. Default: false. */
  readonly defers?: boolean;
  /**
   * Sends one request and streams the response. Each array holds the events of one read from the network, so that they are forwarded together.
   * Stops when `signal` aborts. Throws a {@linkcode ModelError} if the provider rejects the request or the stream is cut.
   */
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<readonly ModelEvent[]>;
}

/** The kind of a failed request. */
export type ModelErrorCode = FailureCode;

/** Facts about a failed request. */
export interface ModelErrorOptions extends ErrorOptions {
  /** Whether the same request may succeed later. Default: false. */
  readonly recoverable?: boolean;
  /** Milliseconds that the provider asks to wait. */
  readonly retryAfter?: number;
  /** The HTTP status, if there was one. */
  readonly status?: number;
  /** Whether the request was larger than the model's context. Default: false. */
  readonly overflow?: boolean;
  /** The kind of failure. Default: derived from the other options. */
  readonly code?: ModelErrorCode;
}

/** A request that the provider rejected, or a response that was cut. */
export class ModelError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "ModelError");

  /** The name of the class. */
  override readonly name = "ModelError";
  /** Whether the same request may succeed later. */
  readonly recoverable: boolean;
  /** Milliseconds that the provider asks to wait. */
  readonly retryAfter: number | undefined;
  /** The HTTP status, if there was one. */
  readonly status: number | undefined;
  /** Whether the request was larger than the model's context. */
  readonly overflow: boolean;
  /** The kind of failure. */
  readonly code: ModelErrorCode;

  /** Creates an error whose `code` follows from the other options unless it is given. */
  constructor(message: string, options: ModelErrorOptions = {}) {
    const { recoverable = false, retryAfter, status, overflow = false, code, ...rest } = options;
    super(message, rest);
    this.recoverable = recoverable;
    this.retryAfter = retryAfter;
    this.status = status;
    this.overflow = overflow;
    this.code = code ?? codeOf(status, recoverable, overflow);
  }
}

function codeOf(status: number | undefined, recoverable: boolean, overflow: boolean): ModelErrorCode {
  if (overflow) return "context";
  if (status === 429) return "rate_limited";
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 503 || status === 529) return "overloaded";
  return recoverable || (status !== undefined && status >= 500) ? "unavailable" : "internal";
}
