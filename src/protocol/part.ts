/**
 * Parts of messages, and changes of a structured answer that is streamed. Plain JSON data, safe to store and to send.
 *
 * @module
 */

// Changes of a structured answer that is streamed. Plain JSON data.

/** The way to a value: keys of objects, and indexes of arrays. Empty for the whole answer. */
export type OutputPath = readonly (string | number)[];

/** One change of a partial value: a new value at a path, or text to append to the string at a path. */
export type OutputChange =
  | { readonly path: OutputPath; readonly value: Json }
  | { readonly path: OutputPath; readonly text: string };

// Parts of messages.

/** Text for the model or from it. */
export interface TextPart {
  /** Distinguishes it from other parts. */
  readonly type: "text";
  /** The text itself. */
  readonly text: string;
}

/** The model's reasoning before its answer. */
export interface ReasoningPart {
  /** Distinguishes it from other parts. */
  readonly type: "reasoning";
  /** The text itself. */
  readonly text: string;
  /** Data of the provider, such as a signature, which is sent back unchanged. */
  readonly meta?: Json;
}

/** An image or a file: base64 `data`, or a `url`. */
export interface MediaPart {
  /** Distinguishes it from other parts. */
  readonly type: "media";
  /** The media type, such as `image/png`. */
  readonly mediaType: string;
  /** The bytes, in base64. */
  readonly data?: string;
  /** The address of the file. */
  readonly url?: string;
  /** The provider's own data about a file that the model generated, which is sent back to it unchanged. */
  readonly meta?: Json;
}

/** A source of an answer: a page or a document that the model cites. It is for clients; models do not receive it. */
export interface SourcePart {
  /** Distinguishes it from other parts. */
  readonly type: "source";
  /** The address. Undefined for a document without one. */
  readonly url?: string;
  /** The title of the page or the name of the document. */
  readonly title?: string;
  /** The cited text. */
  readonly text?: string;
}

/** A call of a tool that the provider of the model runs itself. Its result follows it in the same message. */
export interface ProviderCallPart {
  /** Distinguishes it from other parts. */
  readonly type: "provider_call";
  /** The provider's id of the call. */
  readonly callId: string;
  /** The name of the tool, such as `web_search`; for a remote MCP server, the name of the server's tool. */
  readonly name: string;
  /** The name of the remote MCP server, if it is a tool of one. */
  readonly server?: string;
  /** The input, in the provider's form. */
  readonly input: Json;
  /** The provider's own data, which is sent back to it unchanged. */
  readonly meta?: Json;
}

/** The result of a call that the provider of the model has run. */
export interface ProviderResultPart {
  /** Distinguishes it from other parts. */
  readonly type: "provider_result";
  /** The id of the call. */
  readonly callId: string;
  /** The name of the tool. */
  readonly name: string;
  /** The outcome of the call. */
  readonly status: "ok" | "error";
  /** The output, in the provider's form. Null if the provider keeps it to itself. */
  readonly output: Json;
  /** The provider's own data, which is sent back to it unchanged. */
  readonly meta?: Json;
}

/** A refusal of the model or of its provider. A refusal that the model wrote is also the text of the answer. */
export interface RefusalPart {
  /** Distinguishes it from other parts. */
  readonly type: "refusal";
  /** The refusal, or its explanation. Empty if the provider gives none. */
  readonly text: string;
  /** The provider's category of the refusal. */
  readonly category?: string;
}

/** A token of the answer, and the logarithm of its probability. */
export interface TokenLogprob {
  /** The text of the token. */
  readonly token: string;
  /** The natural logarithm of its probability. */
  readonly logprob: number;
  /** The most likely tokens at this place. */
  readonly top?: readonly TokenLogprob[];
}

/** The log probabilities of the tokens of an answer. It is for clients; models do not receive it. */
export interface LogprobsPart {
  /** Distinguishes it from other parts. */
  readonly type: "logprobs";
  /** The tokens, in order. */
  readonly tokens: readonly TokenLogprob[];
}

/** A part of an answer that is complete at once. */
export type AddedPart = MediaPart | SourcePart | ProviderCallPart | ProviderResultPart | RefusalPart | LogprobsPart;

/** A call as the model made it. */
export interface CallPart extends Call {
  /** Distinguishes it from other parts. */
  readonly type: "call";
}

/** The model's request to run a tool. */
export interface Call {
  /** The provider's id of the call, unique in its session. */
  readonly id: string;
  /** The tool's name, as the model wrote it. */
  readonly name: string;
  /** The input as the model wrote it, parsed from JSON; the text itself if it is not JSON. */
  readonly input: unknown;
  /** The parse error, if the input is not JSON. */
  readonly malformed?: string;
  /** True if the response ended within the input, which is a text then. Such a call never runs, whatever a hook makes of its input. Default: false. */
  readonly incomplete?: boolean;
}

/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** A part of a message of the model. */
export type AnswerPart = TextPart | ReasoningPart | CallPart | AddedPart;

/** A part of a message of a person or of a result. */
export type ContentPart = TextPart | MediaPart;
