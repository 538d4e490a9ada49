/**
 * Responses of models on the wire.
 *
 * @module
 */
import * as z from "zod";
import { type AnswerPart, callsOf, type FinishReason, type ModelResponse, textOf } from "../../../../mod.ts";
import { fromWireCall, toWireCall, type WireCall, wireCall } from "./message.ts";
import { struct, text } from "./struct.ts";

/** A response on the wire. */
export interface WireResponse {
  /** Always "assistant". */
  readonly role?: string | undefined;
  /** The text. */
  readonly content: string;
  /** The reasoning of the model. */
  readonly reasoning_content?: string | undefined;
  /** The calls of the response. */
  readonly tool_calls?: readonly WireCall[] | undefined;
  /** The reason why the model stopped. */
  readonly finish_reason: string;
  /** The tokens of the request and the response. */
  readonly usage?: WireUsage | undefined;
}

/** Tokens, on the wire. */
export interface WireUsage {
  /** The tokens of the request. */
  readonly prompt_tokens: number;
  /** The tokens of the response. */
  readonly completion_tokens: number;
  /** Both. */
  readonly total_tokens: number;
}

const count = z.number().default(0);

/** The schema of a response. */
export const wireResponse: z.core.$ZodType<WireResponse> = struct({
  role: z.string().optional(),
  content: text,
  reasoning_content: z.string().optional(),
  tool_calls: z.array(wireCall).optional(),
  finish_reason: text,
  usage: z.optional(struct({ prompt_tokens: count, completion_tokens: count, total_tokens: count })),
});

const reasons: readonly (readonly [FinishReason, string])[] = [
  ["stop", "stop"],
  ["calls", "tool_calls"],
  ["length", "length"],
  ["filter", "content_filter"],
  ["refusal", "content_filter"],
  ["empty", "stop"],
  ["other", "other"],
];

/** Converts a response for the wire. */
export function toWireResponse(response: ModelResponse): WireResponse {
  const { finish, usage: { input, output } } = response;
  const thought = thoughtOf(response);
  const calls = callsOf(response).map(toWireCall);
  return {
    role: "assistant",
    content: textOf(response),
    ...(thought !== "" && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
    finish_reason: reasons.find(([reason]) => reason === finish)?.[1] ?? "",
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  };
}

/** Converts a response from the wire. Unchanged parts keep their identity, and the usage stays. */
export function fromWireResponse(wire: WireResponse, before: ModelResponse): ModelResponse {
  const { content, reasoning_content = "", tool_calls = [], finish_reason } = wire;
  const of = (type: AnswerPart["type"]) => before.parts.filter((part) => part.type === type);
  const texts: readonly AnswerPart[] = content === "" ? [] : [{ type: "text", text: content }];
  const thought: readonly AnswerPart[] = reasoning_content === ""
    ? []
    : [{ type: "reasoning", text: reasoning_content }];
  const made = callsOf(before);
  const calls = tool_calls.map((call) => {
    const same = made.find((each) => isSame(toWireCall(each), call));
    if (same) return same;
    const isIncomplete = made.some(({ id, incomplete }) => incomplete && id === call.id); // it stays so, whatever the hook writes
    return isIncomplete ? { ...fromWireCall(call), incomplete: true } : fromWireCall(call);
  });
  const finish = reasons.find(([, reason]) => reason === finish_reason)?.[0];
  return {
    ...before,
    parts: [
      ...reasoning_content === thoughtOf(before) ? of("reasoning") : thought,
      ...content === textOf(before) ? of("text") : texts,
      ...calls,
    ],
    finish: finish ?? (calls.length > 0 ? "calls" : "stop"),
  };
}

function thoughtOf({ parts }: ModelResponse): string {
  return parts.map((part) => part.type === "reasoning" ? part.text : "").join("");
}

function isSame(a: WireCall, b: WireCall): boolean {
  return a.id === b.id && a.function.name === b.function.name && a.function.arguments === b.function.arguments;
}
