/**
 * The answers of hooks, as yoi writes them: a word, or a word with a value.
 *
 * @module
 */
import * as z from "zod";
import { contextSchema, type Message } from "./messages.ts";

/** The answer of `on_prompt_submit`. */
export type OnPromptSubmitResult = "Continue" | { readonly Cancel: string };
/** Creates answers of `on_prompt_submit`. */
export const OnPromptSubmitResult: {
  readonly Continue: "Continue";
  readonly Cancel: (reason: string) => OnPromptSubmitResult;
} = { Continue: "Continue", Cancel };

/** The answer of `pre_llm_request`. */
export type PreLlmRequestResult = "Continue" | { readonly Cancel: string };
/** Creates answers of `pre_llm_request`. */
export const PreLlmRequestResult: {
  readonly Continue: "Continue";
  readonly Cancel: (reason: string) => PreLlmRequestResult;
} = { Continue: "Continue", Cancel };

/** The answer of `pre_tool_call`. */
export type PreToolCallResult = "Continue" | "Skip" | "Pause" | { readonly Abort: string };
/** Creates answers of `pre_tool_call`. */
export const PreToolCallResult: {
  readonly Continue: "Continue";
  readonly Skip: "Skip";
  readonly Pause: "Pause";
  readonly Abort: (reason: string) => PreToolCallResult;
} = { Continue: "Continue", Skip: "Skip", Pause: "Pause", Abort };

/** The answer of `post_tool_call`. */
export type PostToolCallResult = "Continue" | { readonly Abort: string };
/** Creates answers of `post_tool_call`. */
export const PostToolCallResult: {
  readonly Continue: "Continue";
  readonly Abort: (reason: string) => PostToolCallResult;
} = { Continue: "Continue", Abort };

/** The answer of `on_turn_end`. */
export type OnTurnEndResult = "Finish" | "Paused" | { readonly ContinueWithMessages: readonly Message[] };
/** Creates answers of `on_turn_end`. */
export const OnTurnEndResult: {
  readonly Finish: "Finish";
  readonly Paused: "Paused";
  readonly ContinueWithMessages: (messages: readonly Message[]) => OnTurnEndResult;
} = { Finish: "Finish", Paused: "Paused", ContinueWithMessages: (messages) => ({ ContinueWithMessages: messages }) };

function Cancel(reason: string): { readonly Cancel: string } {
  return { Cancel: reason };
}

function Abort(reason: string): { readonly Abort: string } {
  return { Abort: reason };
}

const cancelling = z.preprocess(split, z.union([word("Continue"), because("Cancel")]));

/** The schemas of answers, as the word and its value. No answer means `Continue`, and a missing reason is replaced. */
export const answers = {
  on_prompt_submit: cancelling,
  pre_llm_request: cancelling,
  pre_tool_call: z.preprocess(split, z.union([word("Continue", "Skip", "Pause"), because("Abort")])),
  post_tool_call: z.preprocess(split, z.union([word("Continue"), because("Abort")])),
  on_turn_end: z.preprocess(
    split,
    z.union([
      word("Finish", "Continue", "Paused"),
      z.tuple([z.literal("ContinueWithMessages"), z.preprocess((given) => [given].flat(), contextSchema)]),
    ]),
  ),
};

function word<T extends string>(...words: readonly T[]) {
  return z.tuple([z.enum(words), z.unknown().optional()]);
}

function because<T extends string>(word: T) {
  return z.tuple([z.literal(word), z.string().catch("A hook gave no reason.")]);
}

/** Splits `"Skip"`, `{ Abort: "..." }` and `{ type: "Abort", reason: "..." }` into the word and its value. */
function split(given: unknown): readonly unknown[] {
  if (typeof given !== "object" || given === null) return [given ?? "Continue", undefined];
  const { type, reason, messages } = { type: undefined, reason: undefined, messages: undefined, ...given };
  return type === undefined ? Object.entries(given)[0] ?? ["Continue", undefined] : [type, reason ?? messages];
}
