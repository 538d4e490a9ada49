/**
 * The hooks of yoi, the chain in which they run, and the messages and answers that pass between them.
 *
 * @module
 */
import * as z from "zod";
import { warnFailed } from "../kit/adapter.ts";
import { unknownMembers } from "../kit/answers.ts";
import { type ForeignDecision, foreignDecision } from "../kit/denial.ts";
import type { AnyTool, Json, Scope } from "../../../mod.ts";
import { describeIssues, isObject } from "../../../src/core/kit.ts";

// Messages in the form of yoi, and their schemas.

/** The author of a message. */
export type Role = "user" | "assistant" | "system";

/** A message. Results of tools are parts of a message of the user. */
export interface Message {
  /** The author. A message of the system, added by a hook, is added to the instructions. */
  role: Role;
  /** A text, or parts if there is more than text. */
  content: string | ContentPart[];
  /** The middleware that wrote a message of the user. */
  from?: string | undefined;
}

/** Creates messages. */
export const Message: {
  readonly user: (text: string) => Message;
  readonly assistant: (text: string) => Message;
  readonly system: (text: string) => Message;
} = {
  user: (text) => ({ role: "user", content: text }),
  assistant: (text) => ({ role: "assistant", content: text }),
  system: (text) => ({ role: "system", content: text }),
};

/** A part of a message. */
export type ContentPart =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string; meta?: Json | undefined }
  | { type: "media"; mediaType: string; data?: string | undefined; url?: string | undefined; meta?: Json | undefined }
  | { type: "source"; url?: string | undefined; title?: string | undefined; text?: string | undefined }
  | {
    type: "provider_call";
    callId: string;
    name: string;
    server?: string | undefined;
    input: Json;
    meta?: Json | undefined;
  }
  | {
    type: "provider_result";
    callId: string;
    name: string;
    status: "ok" | "error";
    output: Json;
    meta?: Json | undefined;
  }
  | { type: "refusal"; text: string; category?: string | undefined }
  | { type: "logprobs"; tokens: unknown[] }
  | { type: "tool_use"; id: string; name: string; input: unknown }
  | { type: "tool_result"; tool_use_id: string; content: string; is_error: boolean };

const partSchema: z.core.$ZodType<ContentPart> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("reasoning"), text: z.string(), meta: z.json().optional() }),
  z.object({
    type: z.literal("media"),
    mediaType: z.string(),
    data: z.string().optional(),
    url: z.string().optional(),
    meta: z.json().optional(),
  }),
  z.object({
    type: z.literal("source"),
    url: z.string().optional(),
    title: z.string().optional(),
    text: z.string().optional(),
  }),
  z.object({
    type: z.literal("provider_call"),
    callId: z.string(),
    name: z.string(),
    server: z.string().optional(),
    input: z.json(),
    meta: z.json().optional(),
  }),
  z.object({
    type: z.literal("provider_result"),
    callId: z.string(),
    name: z.string(),
    status: z.enum(["ok", "error"]),
    output: z.json(),
    meta: z.json().optional(),
  }),
  z.object({ type: z.literal("refusal"), text: z.string(), category: z.string().optional() }),
  z.object({ type: z.literal("logprobs"), tokens: z.array(z.unknown()) }),
  z.object({ type: z.literal("tool_use"), id: z.string(), name: z.string(), input: z.unknown() }),
  z.object({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: z.string(),
    is_error: z.boolean().default(false),
  }),
]);

/** The schema of a message. */
const messageSchema: z.core.$ZodType<Message> = z.object({
  role: z.enum(["user", "assistant", "system"]),
  content: z.union([z.string(), z.array(partSchema)]),
  from: z.string().optional(),
});

/** A message, or a text of the user. */
const messageOrText: z.core.$ZodType<Message> = z.preprocess(
  (message) => typeof message === "string" ? Message.user(message) : message,
  messageSchema,
);

/** The schema of a context: messages or texts. */
const contextSchema: z.core.$ZodType<Message[]> = z.array(messageOrText);

// The answers of hooks, as yoi writes them: a word, or a word with a value.

/** The answer of `on_prompt_submit`. */
export type OnPromptSubmitResult = "Continue" | { readonly Cancel: string };
/** Creates answers of `on_prompt_submit`. */
export const OnPromptSubmitResult: {
  readonly Continue: "Continue";
  readonly Cancel: (reason: string) => OnPromptSubmitResult;
} = { Continue: "Continue", Cancel };

/** The answer of `pre_llm_request`. */
export type PreLlmRequestResult = OnPromptSubmitResult;
/** Creates answers of `pre_llm_request`. */
export const PreLlmRequestResult: typeof OnPromptSubmitResult = OnPromptSubmitResult;

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

function word<T extends string>(...words: readonly T[]) {
  return z.tuple([z.enum(words), z.unknown().optional()]);
}

function because<T extends string>(word: T) {
  return z.tuple([z.literal(word), z.string().catch("A hook gave no reason.")]);
}

/** Splits `"Skip"`, `{ Abort: "..." }` and `{ type: "Abort", reason: "..." }` into the word and its value. */
function split(value: unknown): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [value ?? "Continue", undefined];
  const { type, reason, messages } = { type: undefined, reason: undefined, messages: undefined, ...value };
  return type === undefined ? Object.entries(value)[0] ?? ["Continue", undefined] : [type, reason ?? messages];
}

// The hooks, as users of yoi write them, and their arguments.

/** A call. A hook can change its name and its input, not its id. */
export interface ToolCall {
  /** Its id. */
  id: string;
  /** The tool. */
  name: string;
  /** The input, as JSON. */
  input: unknown;
}

/** A result. A hook can change it. */
export interface ToolResult {
  /** The id of the call. */
  tool_use_id: string;
  /** The text for the model; of a failure, the message of the error as thrown. */
  content: string;
  /** Whether the call did not succeed. */
  is_error: boolean;
}

/** The definition of a tool. */
export interface ToolMeta {
  /** Its name. */
  readonly name: string;
  /** Its description. */
  readonly description: string;
  /** The JSON Schema of its input. */
  readonly input_schema: { readonly [key: string]: unknown };
}

/** The argument of `pre_tool_call`. */
export interface ToolCallContext {
  /** The call. */
  call: ToolCall;
  /** The definition of its tool. */
  readonly meta: ToolMeta;
  /** Its tool. */
  readonly tool: AnyTool;
  /** Its batch of calls, and its index in the model's order, from 0. */
  readonly context: { readonly call_id: string; readonly batch_id: string; readonly call_index: number };
}

/** The argument of `post_tool_call`. */
export interface PostToolCallContext extends ToolCallContext {
  /** The result. */
  result: ToolResult;
}

/** The second argument of every hook. */
export interface HookOptions {
  /** Aborts when the run is stopped or takes too long. */
  readonly signal: AbortSignal;
}

/** The answer of a hook, or a promise of it. Nothing means `Continue`. */
export type Given<R> = R | void | null | Promise<R | void | null>;

/** A hook: an object with one or more of these six methods. Each receives a draft, and its changes in the draft count. */
export interface YoiHook {
  /** When a run receives a prompt; not on resume. */
  readonly on_prompt_submit?: (message: Message, options: HookOptions) => Given<OnPromptSubmitResult>;
  /** Before every request to the model. Changes are for this request only. */
  readonly pre_llm_request?: (context: Message[], options: HookOptions) => Given<PreLlmRequestResult>;
  /** Before a call: for one call after another, before the first of them runs. */
  readonly pre_tool_call?: (ctx: ToolCallContext, options: HookOptions) => Given<PreToolCallResult>;
  /** After a call: for one call after another, when all of them have run. */
  readonly post_tool_call?: (ctx: PostToolCallContext, options: HookOptions) => Given<PostToolCallResult>;
  /** When the model has answered without calls. Changes in `messages` are lost. */
  readonly on_turn_end?: (messages: Message[], options: HookOptions) => Given<OnTurnEndResult>;
  /** When a run is cut short: it was stopped, it failed, or a hook ended it. */
  readonly on_abort?: (reason: string, options: HookOptions) => Given<void>;
}

// The events, as data, and the chain of hooks.

const call: z.core.$ZodType<ToolCall> = z.object({ id: z.string(), name: z.string(), input: z.unknown() });
const result: z.core.$ZodType<ToolResult> = z.object({
  tool_use_id: z.string(),
  content: z.string(),
  is_error: z.boolean(),
});
const cancelling = z.preprocess(split, z.union([word("Continue"), because("Cancel")]));

/**
 * The point of each event, whether a denial in whatever form counts there, and the schemas of its draft and of its answers: a word and its value. No answer
 * means `Continue`, and a missing reason is replaced.
 */
const events = {
  on_prompt_submit: { point: "prompt", guards: true, draft: messageSchema, answer: cancelling },
  pre_llm_request: { point: "model", guards: false, draft: contextSchema, answer: cancelling },
  pre_tool_call: {
    point: "tool",
    guards: true,
    draft: z.object({ call }),
    answer: z.preprocess(split, z.union([word("Continue", "Skip", "Pause"), because("Abort")])),
  },
  post_tool_call: {
    point: "tool",
    guards: false,
    draft: z.object({ call, result }),
    answer: z.preprocess(split, z.union([word("Continue"), because("Abort")])),
  },
  on_turn_end: {
    point: "stop",
    guards: false,
    draft: contextSchema,
    answer: z.preprocess(
      split,
      z.union([
        word("Finish", "Continue", "Paused"),
        z.tuple([z.literal("ContinueWithMessages"), z.preprocess((value) => [value].flat(), contextSchema)]),
      ]),
    ),
  },
} as const;

type EventName = keyof typeof events;
type Draft<E extends EventName> = z.output<(typeof events)[E]["draft"]>;
type Answer<E extends EventName> = z.output<(typeof events)[E]["answer"]>;

/** The outcome of a chain. */
interface Consulted<E extends EventName> {
  readonly draft: Draft<E>;
  /** The answer that ended the chain. */
  readonly answer?: Answer<E>;
  /** The decision that ended the chain, in the form of another system. */
  readonly foreign?: ForeignDecision;
}

/** Asks one hook after another, each with the changes of those before it, until one decides. `about` has the further fields of the argument of hooks. */
export async function consult<E extends EventName>(
  hooks: readonly YoiHook[],
  event: E,
  ctx: Scope,
  original: Draft<E>,
  about: object = {},
): Promise<Consulted<E>> {
  const schemas: { readonly draft: z.core.$ZodType; readonly answer: z.core.$ZodType } = events[event];
  let draft = original;
  for (const hook of hooks) {
    const ask = hook[event]?.bind(hook) as ((draft: Draft<E>, options: HookOptions) => unknown) | undefined; // a method receives the draft of its event
    if (!ask) continue;
    const copy = structuredClone(draft);
    const returned = await ask(Object.assign(copy, about), { signal: ctx.signal });
    draft = read<Draft<E>>(copy, schemas.draft, event, ctx) ?? draft;
    const answer = read<Answer<E>>(returned, schemas.answer, event, ctx);
    if (answer && answer[0] !== "Continue" && answer[0] !== "Finish") return { draft, answer };
    const foreign = reportForeign(returned, answer?.[0], event, ctx);
    if (foreign) return { draft, foreign };
  }
  return { draft };
}

/** Returns the decision in an answer besides its known word. Emits a warning about it, or about other unknown members. A prompt is not asked about. */
function reportForeign(
  value: unknown,
  word: string | undefined,
  event: EventName,
  ctx: Scope,
): ForeignDecision | undefined {
  if (word !== undefined && !isObject(value)) return undefined;
  const found = events[event].guards ? foreignDecision(value) : undefined;
  if (found && (found.type === "deny" || event === "pre_tool_call")) {
    warn(ctx, event, `${found.type === "deny" ? "denies" : "asks"} in the form of another system: ${found.member}.`);
    return found;
  }
  const unknown = word === undefined ? undefined : unknownMembers(value, [word, "type", "reason", "messages"]);
  if (unknown !== undefined) warn(ctx, event, `returned ${unknown}.`);
  return undefined;
}

/** Parses a draft or an answer. Emits a warning if it is invalid. */
function read<T>(value: unknown, schema: z.core.$ZodType, event: EventName, ctx: Scope): T | undefined {
  const { success, data, error } = z.safeParse(schema, value);
  if (success) return data as T; // the caller passes the schema of the type
  warn(ctx, event, `returned an invalid output: ${describeIssues(error.issues)}`);
  return undefined;
}

function warn(ctx: Scope, event: EventName, problem: string): void {
  warnFailed(ctx, { middleware: "yoi_hooks", point: events[event].point, message: `${event} ${problem}` });
}
