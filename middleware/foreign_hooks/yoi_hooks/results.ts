/**
 * What hooks give, as they write it at home: a word, or a word and what it carries.
 *
 * @module
 */
import * as z from "zod";
import { contextForm, type Message } from "./messages.ts";

/** What `on_prompt_submit` gives. */
export type OnPromptSubmitResult = "Continue" | { readonly Cancel: string };
/** Makes what `on_prompt_submit` gives. */
export const OnPromptSubmitResult: {
  readonly Continue: "Continue";
  readonly Cancel: (reason: string) => OnPromptSubmitResult;
} = { Continue: "Continue", Cancel };

/** What `pre_llm_request` gives. */
export type PreLlmRequestResult = "Continue" | { readonly Cancel: string };
/** Makes what `pre_llm_request` gives. */
export const PreLlmRequestResult: {
  readonly Continue: "Continue";
  readonly Cancel: (reason: string) => PreLlmRequestResult;
} = { Continue: "Continue", Cancel };

/** What `pre_tool_call` gives. */
export type PreToolCallResult = "Continue" | "Skip" | "Pause" | { readonly Abort: string };
/** Makes what `pre_tool_call` gives. */
export const PreToolCallResult: {
  readonly Continue: "Continue";
  readonly Skip: "Skip";
  readonly Pause: "Pause";
  readonly Abort: (reason: string) => PreToolCallResult;
} = { Continue: "Continue", Skip: "Skip", Pause: "Pause", Abort };

/** What `post_tool_call` gives. */
export type PostToolCallResult = "Continue" | { readonly Abort: string };
/** Makes what `post_tool_call` gives. */
export const PostToolCallResult: {
  readonly Continue: "Continue";
  readonly Abort: (reason: string) => PostToolCallResult;
} = { Continue: "Continue", Abort };

/** What `on_turn_end` gives. */
export type OnTurnEndResult = "Finish" | "Paused" | { readonly ContinueWithMessages: readonly Message[] };
/** Makes what `on_turn_end` gives. */
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

/** A word that carries nothing. */
export type Word<T extends string> = [word: T, carried?: unknown];
/** A word that carries a reason. */
export type Because<T extends string> = [word: T, reason: string];
/** What the hooks of each event may give, as the word and what it carries. */
export interface Answers {
  /** At `on_prompt_submit`. */
  readonly on_prompt_submit: z.ZodType<Word<"Continue"> | Because<"Cancel">>;
  /** At `pre_llm_request`. */
  readonly pre_llm_request: z.ZodType<Word<"Continue"> | Because<"Cancel">>;
  /** At `pre_tool_call`. */
  readonly pre_tool_call: z.ZodType<Word<"Continue" | "Skip" | "Pause"> | Because<"Abort">>;
  /** At `post_tool_call`. */
  readonly post_tool_call: z.ZodType<Word<"Continue"> | Because<"Abort">>;
  /** At `on_turn_end`. */
  readonly on_turn_end: z.ZodType<Word<"Finish" | "Continue" | "Paused"> | ["ContinueWithMessages", Message[]]>;
}

/** Reads what hooks give. Nothing at all lets the others go on, and a reason that is missing is no reason not to act. */
export const answers: Answers = {
  on_prompt_submit: z.preprocess(split, z.union([word("Continue"), because("Cancel")])),
  pre_llm_request: z.preprocess(split, z.union([word("Continue"), because("Cancel")])),
  pre_tool_call: z.preprocess(split, z.union([word("Continue", "Skip", "Pause"), because("Abort")])),
  post_tool_call: z.preprocess(split, z.union([word("Continue"), because("Abort")])),
  on_turn_end: z.preprocess(
    split,
    z.union([
      word("Finish", "Continue", "Paused"),
      z.tuple([z.literal("ContinueWithMessages"), z.preprocess((given) => [given].flat(), contextForm)]),
    ]),
  ),
};

function word<T extends string>(...words: readonly T[]) {
  return z.tuple([z.enum(words), z.unknown().optional()]);
}

function because<T extends string>(word: T) {
  return z.tuple([z.literal(word), z.string().catch("A hook gave no reason.")]);
}

/** Splits `"Skip"`, `{ Abort: "..." }` and `{ type: "Abort", reason: "..." }` into the word and what it carries. */
function split(given: unknown): readonly unknown[] {
  if (typeof given !== "object" || given === null) return [given ?? "Continue", undefined];
  const { type, reason, messages } = { type: undefined, reason: undefined, messages: undefined, ...given };
  return type === undefined ? Object.entries(given)[0] ?? ["Continue", undefined] : [type, reason ?? messages];
}
