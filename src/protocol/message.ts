/**
 * Messages between a person, a model and tools. Plain JSON data, safe to store and to send.
 *
 * @module
 */
import type { AnswerPart, CallPart, ContentPart, Json, ProviderCallPart, ProviderResultPart } from "./part.ts";

/** A message of the person, or one that a middleware adds for the model to read. */
export interface UserMessage {
  /** The role of the author. */
  readonly role: "user";
  /** The content. */
  readonly parts: readonly ContentPart[];
  /** The author, if it is not the person: the name of a middleware, or the engine. */
  readonly from?: string;
  /** The id that the client gave the message, if it names its messages. It is not sent to models. */
  readonly id?: string;
}

/** A response of the model, and the calls it makes. */
export interface AssistantMessage {
  /** The role of the author. */
  readonly role: "assistant";
  /** The content. */
  readonly parts: readonly AnswerPart[];
}

/** The results of one batch: one for each call of the message before it, in the order of the calls. */
export interface ToolMessage {
  /** The role of the author. */
  readonly role: "tool";
  /** One result for each call, in the order of the calls. */
  readonly results: readonly CallResult[];
}

/** One entry of a transcript. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

/** The outcome of a call. */
export type ResultStatus = "ok" | "error" | "denied" | "timeout" | "skipped" | "aborted";

/** A file or page that a tool created, by its address. */
export interface Artifact {
  /** The address, in a form that the reader understands: a URL, a path, a tag. */
  readonly uri: string;
  /** The name of the file. */
  readonly name?: string;
  /** The media type, such as `image/png`. */
  readonly mediaType?: string;
}

/** The outcome of a call, made by `text()`, `denied()`, `failed()` and `skipped()`, or from the value that a tool returns. */
export interface ToolResult {
  /** Distinguishes a result from other values that a tool returns. */
  readonly type: "result";
  /** The outcome of the call. */
  readonly status: ResultStatus;
  /** The content that the model reads. */
  readonly parts: readonly ContentPart[];
  /** Further texts for the model, sent as a message of their own after the batch. */
  readonly context?: readonly string[];
  /** A text for the person, which the model does not receive: emitted as a `notice`. */
  readonly person?: string;
  /** Whether clients receive only the status of the result. Default: false. */
  readonly silent?: boolean;
  /** Artifacts that are stored elsewhere, for the client. The model does not receive them. */
  readonly artifacts?: readonly Artifact[];
  /** Whether the result itself answers the person. If all results of a batch are `ok` and handled, the run ends without another request to the model. */
  readonly handled?: boolean;
  /** The final input, after all hooks and guards. The engine sets it. */
  readonly input?: unknown;
  /** True if the transcript keeps `input` in place of the input that the model gave. Default: false. */
  readonly rewritten?: boolean;
  /** The value that the execution threw, for hooks. The engine sets it. It is never saved and never sent. */
  readonly error?: unknown;
}

/** A result as the transcript keeps it. */
export interface CallResult {
  /** The id of the call. */
  readonly callId: string;
  /** The name that the model called. */
  readonly name: string;
  /** The outcome of the call. */
  readonly status: ResultStatus;
  /** The content. */
  readonly parts: readonly ContentPart[];
  /** Artifacts that are stored elsewhere. */
  readonly artifacts?: readonly Artifact[];
  /** Whether the result itself answers the person. */
  readonly handled?: boolean;
  /** The calls inside the subagent that did the work, for clients. Models do not receive them. Only results in a transcript have them, and no event. */
  readonly inner?: InnerCalls;
}

/** The calls inside a subagent, and inside its own subagents, as the clients of the run have seen them: behind its filters. */
export interface InnerCalls {
  /** The calls, in the order in which clients saw them. Without the oldest, if all have more than 100,000 characters as JSON. */
  readonly calls: readonly InnerCall[];
  /** The number of calls that were left out. Default: 0. */
  readonly omitted?: number;
}

/** A call inside a subagent. */
export interface InnerCall {
  /** The ids of the calls of the subagents that lead to it, outermost first, and its own: `call_1/call_7`. */
  readonly id: string;
  /** The name of the tool. */
  readonly name: string;
  /** The input. */
  readonly input: unknown;
  /** The number of the event with which clients saw it, which orders it among the calls of other subagents. */
  readonly at: number;
  /** The outcome. Undefined: it has none yet. */
  readonly status?: ResultStatus;
  /** The content of the result. */
  readonly parts?: readonly ContentPart[];
  /** The questions to a person before it may run; of a pending call, those that it waits for. */
  readonly questions?: readonly string[];
  /** True if it had not started when the subagent paused. Default: false. */
  readonly pending?: boolean;
  /** The person's answer to the questions. */
  readonly answer?: InnerAnswer;
  /** True if the provider of the model runs it. Its result is `output` then. Default: false. */
  readonly provider?: boolean;
  /** The output, in the provider's form. */
  readonly output?: Json;
}

/** The answer of a person whether a call inside a subagent may run. */
export interface InnerAnswer {
  /** True if it may run. */
  readonly approved: boolean;
  /** The reason of the person. */
  readonly reason?: string;
  /** The run that had paused. */
  readonly run: string;
  /** The number of its `run.paused` event. */
  readonly pausedAt: number;
}

/** The tokens of model requests. */
export interface Usage {
  /** Tokens of the requests. */
  readonly input: number;
  /** Tokens of the answers. */
  readonly output: number;
  /** The tokens of `input` that the provider read from its cache. */
  readonly cached?: number;
  /** The tokens of `input` that the provider wrote to its cache. */
  readonly cacheWrite?: number;
  /** The tokens of `output` that the model used for reasoning. */
  readonly reasoning?: number;
}

/** Price of a million tokens of a model, in any currency. */
export interface Price {
  /** Price of the request's tokens. */
  readonly input: number;
  /** Price of the answer's tokens. */
  readonly output: number;
  /** Price of tokens that the provider read from its cache. Default: as `input`. */
  readonly cached?: number;
  /** Price of tokens that the provider wrote to its cache. Default: as `input`. */
  readonly cacheWrite?: number;
  /** Price of the answer's tokens that the model used for reasoning. Default: as `output`. */
  readonly reasoning?: number;
}

/** Creates a user message from a text. */
export function user(text: string, from?: string): UserMessage {
  return { role: "user", parts: [{ type: "text", text }], ...(from !== undefined && { from }) };
}

/**
 * Returns the text of a message, a response or a result: its text parts, joined.
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
 * Returns a message, response or result with `change` applied to each of its texts. If no text changed, it is the same object.
 *
 * ```ts
 * import { mapText, text, textOf } from "@jizai/jizai";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(textOf(mapText(text("sunny"), (line) => `[OK] ${line}`)), "[OK] sunny");
 * ```
 */
export function mapText<T extends { readonly parts: readonly (AnswerPart | ContentPart)[] }>(
  total: T,
  change: (text: string) => string,
): T {
  let changed = false;
  const parts = total.parts.map((part) => {
    if (part.type !== "text") return part;
    const text = change(part.text);
    if (text === part.text) return part;
    changed = true;
    return { ...part, text };
  });
  return changed ? { ...total, parts } : total;
}

/** Returns the calls of a message or a response, in the model's order. */
export function callsOf({ parts }: { readonly parts: readonly AnswerPart[] }): readonly CallPart[] {
  return parts.filter((part) => part.type === "call");
}

/** Returns the result of a call that the provider ran, among the parts of its message. */
export function providerResultOf(
  { callId }: ProviderCallPart,
  parts: readonly AnswerPart[],
): ProviderResultPart | undefined {
  return parts.find((part) => part.type === "provider_result" && part.callId === callId) as
    | ProviderResultPart
    | undefined; // of this type
}

/** No tokens. */
export const noUsage: Usage = { input: 0, output: 0 };

/** Returns the usage of a part of a run: that at its end, without the tokens that the run had used before. A run that is lost reports none. */
export function usageSince(usage: Usage, before: Usage): Required<Usage> {
  const since = (key: keyof Usage) => Math.max(0, (usage[key] ?? 0) - (before[key] ?? 0));
  return {
    input: since("input"),
    output: since("output"),
    cached: since("cached"),
    cacheWrite: since("cacheWrite"),
    reasoning: since("reasoning"),
  };
}

/** Adds two usages. Optional counts that are 0 are left out. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: { -readonly [count in keyof Usage]: Usage[count] } = {
    input: a.input + b.input,
    output: a.output + b.output,
  };
  for (const count of ["cached", "cacheWrite", "reasoning"] as const) {
    const total = (a[count] ?? 0) + (b[count] ?? 0);
    if (total > 0) sum[count] = total;
  }
  return sum;
}

/** Returns the cost of tokens. */
export function costOf(usage: Usage, { input, output, ...price }: Price): number {
  const { cached = 0, cacheWrite = 0, reasoning = 0 } = usage;
  const ofCache = cached * (price.cached ?? input) + cacheWrite * (price.cacheWrite ?? input);
  const ofAnswer = (usage.output - reasoning) * output + reasoning * (price.reasoning ?? output);
  return ((usage.input - cached - cacheWrite) * input + ofCache + ofAnswer) / 1_000_000;
}
