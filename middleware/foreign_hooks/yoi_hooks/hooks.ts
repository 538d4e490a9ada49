/**
 * Hooks as they are written at home, and how one is asked after another.
 *
 * @module
 */
import type * as z from "zod";
import type { AnyTool, Point, Scope } from "../../../mod.ts";
import { describeIssues } from "../../../src/core/kit.ts";
import type { Message } from "./messages.ts";
import type {
  OnPromptSubmitResult,
  OnTurnEndResult,
  PostToolCallResult,
  PreLlmRequestResult,
  PreToolCallResult,
} from "./results.ts";

/** A call, which a hook may change before it is made: its name and its input, not its id. */
export interface ToolCall {
  /** The provider's id of the call. */
  id: string;
  /** The tool. */
  name: string;
  /** The input, as JSON. */
  input: unknown;
}

/** A result, which a hook may change. */
export interface ToolResult {
  /** The id of the call. */
  tool_use_id: string;
  /** What the model reads. */
  content: string;
  /** Whether it is anything but a success. */
  is_error: boolean;
}

/** What is known of a tool. */
export interface ToolMeta {
  /** What the model calls it. */
  readonly name: string;
  /** What it does. */
  readonly description: string;
  /** JSON Schema of its input. */
  readonly input_schema: { readonly [key: string]: unknown };
}

/** What a hook sees of a call before it is made. */
export interface ToolCallContext {
  /** The call. */
  call: ToolCall;
  /** What is known of its tool. */
  readonly meta: ToolMeta;
  /** The tool itself. */
  readonly tool: AnyTool;
  /** Which batch of calls it belongs to, and its place in the model's order, from 0. */
  readonly context: { readonly call_id: string; readonly batch_id: string; readonly call_index: number };
}

/** What a hook sees of a call after it was made. */
export interface PostToolCallContext extends ToolCallContext {
  /** What it came to. */
  result: ToolResult;
}

/** What a hook is given beside. */
export interface HookOptions {
  /** Aborts when the hook should stop: the run was stopped, or took too long. */
  readonly signal: AbortSignal;
}

/** What a hook gives: at once or later; nothing lets the others go on. */
export type Given<R> = R | void | null | Promise<R | void | null>;

/** A hook: an object with any of these six methods. Each works on a draft, and what it changes in it counts. */
export interface YoiHook {
  /** When a run is given a prompt, and not when it goes on after a pause. */
  readonly on_prompt_submit?: (message: Message, options: HookOptions) => Given<OnPromptSubmitResult>;
  /** Before every request to the model. What it changes is seen by that request alone. */
  readonly pre_llm_request?: (context: Message[], options: HookOptions) => Given<PreLlmRequestResult>;
  /** Before a call is made: one call after another, and all of them before the first is made. */
  readonly pre_tool_call?: (ctx: ToolCallContext, options: HookOptions) => Given<PreToolCallResult>;
  /** After a call was made: one call after another, when all of them have been made. */
  readonly post_tool_call?: (ctx: PostToolCallContext, options: HookOptions) => Given<PostToolCallResult>;
  /** When the model has answered without calls. It may look at `messages`; what it changes there is lost. */
  readonly on_turn_end?: (messages: Message[], options: HookOptions) => Given<OnTurnEndResult>;
  /** When a run was cut short: it was stopped, it failed, or a hook ended it. */
  readonly on_abort?: (reason: string, options: HookOptions) => Given<void>;
}

/** What hooks are asked at one event. */
export interface Asking<D, A> {
  /** The event. */
  readonly event: keyof YoiHook;
  /** The point at which it comes. */
  readonly point: Point;
  /** What a draft has to look like. */
  readonly form: z.ZodType<D>;
  /** What may be answered. */
  readonly answers: z.ZodType<A>;
  /** Asks one hook. */
  readonly ask: (hook: YoiHook, draft: D) => unknown;
}

/** What hooks made of a draft, and the answer that kept others from being asked. */
export interface Consulted<D, A> {
  /** The draft. */
  readonly draft: D;
  /** The answer; none where every hook let the others go on. */
  readonly answer: A | undefined;
}

/** Asks one hook after another, each with what those before it made of the draft, until one does not let the others go on. */
export async function consult<D, A extends readonly [word: string, ...unknown[]]>(
  hooks: readonly YoiHook[],
  { draft, ctx, ...asking }: Asking<D, A> & { readonly draft: D; readonly ctx: Scope },
): Promise<Consulted<D, A>> {
  const { event, form, answers, ask } = asking;
  let made = draft;
  for (const hook of hooks) {
    if (!hook[event]) continue;
    const copy = structuredClone(made);
    const given = await ask(hook, copy);
    made = read(copy, form, asking, ctx) ?? made;
    const answer = read(given, answers, asking, ctx);
    if (answer && answer[0] !== "Continue" && answer[0] !== "Finish") return { draft: made, answer };
  }
  return { draft: made, answer: undefined };
}

/** What a hook gave, where it is in form; whoever watches is told where it is not. */
function read<T>(
  given: unknown,
  form: z.ZodType<T>,
  { event, point }: { readonly event: keyof YoiHook; readonly point: Point },
  { emit }: Scope,
): T | undefined {
  const parsed = form.safeParse(given);
  if (parsed.success) return parsed.data;
  const message = `${event} gave something that is left out: ${describeIssues(parsed.error.issues)}`;
  emit({ type: "warning", code: "hook.failed", message, middleware: "yoi_hooks", point });
  return undefined;
}
