/**
 * Messages: what a model and a person say to each other, and what tools answer. Plain JSON data, safe to store and to send.
 *
 * @module
 */

/** Text for the model or from it. */
export interface TextPart {
  /** Tells it from other parts. */
  readonly type: "text";
  /** The text itself. */
  readonly text: string;
}

/** The model's reasoning before its answer; `meta` is the provider's own, such as a signature, and is sent back unchanged. */
export interface ReasoningPart {
  /** Tells it from other parts. */
  readonly type: "reasoning";
  /** The text itself. */
  readonly text: string;
  /** The provider's own, sent back as it was. */
  readonly meta?: Json;
}

/** An image or a file: base64 `data`, or a `url`. */
export interface MediaPart {
  /** Tells it from other parts. */
  readonly type: "media";
  /** The media type, such as `image/png`. */
  readonly mediaType: string;
  /** Its bytes, in base64. */
  readonly data?: string;
  /** Where it is. */
  readonly url?: string;
}

/** A call that the model made, as it made it. */
export interface CallPart extends Call {
  /** Tells it from other parts. */
  readonly type: "call";
}

/** The model's request to run a tool. */
export interface Call {
  /** The provider's id of the call, unique in its session. */
  readonly id: string;
  /** The tool's name, as the model wrote it. */
  readonly name: string;
  /** The input as the model wrote it, parsed from JSON; the text itself where it was not JSON. */
  readonly input: unknown;
  /** Why the input could not be read as JSON, when it could not. */
  readonly malformed?: string;
}

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** A piece of an answer of the model. */
export type AnswerPart = TextPart | ReasoningPart | CallPart;

/** A piece of what a person or a tool says. */
export type ContentPart = TextPart | MediaPart;

/** A message of the person, or one that a middleware adds for the model to read. */
export interface UserMessage {
  /** The role of the author. */
  readonly role: "user";
  /** The content. */
  readonly parts: readonly ContentPart[];
  /** The author, if it is not the person: the name of a middleware, or the engine. */
  readonly from?: string;
}

/** A response of the model, and the calls it makes. */
export interface AssistantMessage {
  /** The role of the author. */
  readonly role: "assistant";
  /** The content. */
  readonly parts: readonly AnswerPart[];
}

/** The results of one batch of calls: one for each call of the message before it, in its order. */
export interface ToolMessage {
  /** The role of the author. */
  readonly role: "tool";
  /** One for each call, in their order. */
  readonly results: readonly CallResult[];
}

/** One entry of a transcript. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** How a call ended. */
export type ResultStatus = "ok" | "error" | "denied" | "timeout" | "skipped" | "aborted";

/** Something that a tool made, and where it is. */
export interface Artifact {
  /** Where it is, in words of whoever reads it: a URL, a path, a tag. */
  readonly uri: string;
  /** The name of the file. */
  readonly name?: string;
  /** The media type, such as `image/png`. */
  readonly mediaType?: string;
}

/** The outcome of a call. Made by `text()`, `denied()`, `failed()` or by what a tool returns. */
export interface ToolResult {
  /** Tells it from what else a tool may return. */
  readonly type: "result";
  /** How the call ended. */
  readonly status: ResultStatus;
  /** The content that the model reads. */
  readonly parts: readonly ContentPart[];
  /** For the model too, in a message of its own after the batch. */
  readonly context?: readonly string[];
  /** For the person, and not for the model: told as a notice. */
  readonly person?: string;
  /** Whether the person is shown nothing of it but how it ended. Default: false. */
  readonly silent?: boolean;
  /** Artifacts that are stored elsewhere: for the person's program, not for the model. */
  readonly artifacts?: readonly Artifact[];
  /** Whether the person has what they asked for: where every result of a batch says so, the model is not asked again. Counts where it is ok. */
  readonly handled?: boolean;
  /** The final input, after every hook and guard: said by the engine. */
  readonly input?: unknown;
  /** True if the transcript keeps `input` in place of the input that the model gave. Default: false. */
  readonly rewritten?: boolean;
  /** The value that the execution threw, for hooks. The engine sets it. It is never saved and never sent. */
  readonly error?: unknown;
}

/** A result as the transcript keeps it. */
export interface CallResult {
  /** The call it answers. */
  readonly callId: string;
  /** The name the model called. */
  readonly name: string;
  /** How the call ended. */
  readonly status: ResultStatus;
  /** The content. */
  readonly parts: readonly ContentPart[];
  /** Artifacts that are stored elsewhere. */
  readonly artifacts?: readonly Artifact[];
  /** Whether the person has what they asked for. */
  readonly handled?: boolean;
}

/** Tokens that model requests took. */
export interface Usage {
  /** Tokens of the requests. */
  readonly input: number;
  /** Tokens of the answers. */
  readonly output: number;
  /** Those of `input` that the provider had cached. */
  readonly cached?: number;
}

/** Makes a user message of a text. */
export function user(text: string, from?: string): UserMessage {
  return { role: "user", parts: [{ type: "text", text }], ...(from !== undefined && { from }) };
}

/**
 * The text of a message, a response or a result, its text parts joined.
 *
 * ```ts
 * import { text, textOf } from "@jizai/jizai";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(textOf(text("sunny")), "sunny");
 * ```
 */
export function textOf({ parts }: { readonly parts: readonly (AnswerPart | ContentPart)[] }): string {
  let text = "";
  for (const part of parts) if (part.type === "text") text += part.text;
  return text;
}

/**
 * The same message, response or result with `change` applied to each of its texts; the very same object where nothing changed.
 *
 * ```ts
 * import { mapText, text, textOf } from "@jizai/jizai";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(textOf(mapText(text("sunny"), (line) => `[OK] ${line}`)), "[OK] sunny");
 * ```
 */
export function mapText<T extends { readonly parts: readonly (AnswerPart | ContentPart)[] }>(
  whole: T,
  change: (text: string) => string,
): T {
  let changed = false;
  const parts = whole.parts.map((part) => {
    if (part.type !== "text") return part;
    const text = change(part.text);
    if (text === part.text) return part;
    changed = true;
    return { ...part, text };
  });
  return changed ? { ...whole, parts } : whole;
}

/** The calls of a message or a response, in the model's order. */
export function callsOf({ parts }: { readonly parts: readonly AnswerPart[] }): readonly CallPart[] {
  return parts.filter((part) => part.type === "call");
}

/** No tokens. */
export const noUsage: Usage = { input: 0, output: 0 };

/** The sum of two usages. */
export function addUsage(a: Usage, b: Usage): Usage {
  const cached = (a.cached ?? 0) + (b.cached ?? 0);
  return { input: a.input + b.input, output: a.output + b.output, ...(cached > 0 && { cached }) };
}
