/**
 * The hooks of yoi, and the chain in which they run.
 *
 * @module
 */
import * as z from "zod";
import type { AnyTool, Point, Scope } from "../../../mod.ts";
import { describeIssues } from "../../../src/core/kit.ts";
import { type ForeignDecision, foreignDecision } from "../kit/denial.ts";
import { isObject, unknownMembers } from "../kit/fields.ts";
import { warnFailed } from "../kit/warn.ts";
import type { Message } from "./messages.ts";
import type {
  OnPromptSubmitResult,
  OnTurnEndResult,
  PostToolCallResult,
  PreLlmRequestResult,
  PreToolCallResult,
} from "./results.ts";

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

/** Options of asking hooks about one event. */
export interface Asking<D, A> {
  readonly event: keyof YoiHook;
  readonly point: Point;
  /** The schema of a draft. */
  readonly schema: z.core.$ZodType<D>;
  /** The schema of an answer. */
  readonly answers: z.core.$ZodType<A>;
  readonly ask: (hook: YoiHook, draft: D) => unknown;
}

/** The outcome of a chain. */
export interface Consulted<D, A> {
  readonly draft: D;
  /** The answer that ended the chain. */
  readonly answer: A | undefined;
  /** The decision that ended the chain, in the form of another system. */
  readonly foreign?: ForeignDecision;
}

/** Asks one hook after another, each with the changes of those before it, until one decides. */
export async function consult<D, A extends readonly [word: string, ...unknown[]]>(
  hooks: readonly YoiHook[],
  { draft, ctx, ...asking }: Asking<D, A> & { readonly draft: D; readonly ctx: Scope },
): Promise<Consulted<D, A>> {
  const { event, schema, answers, ask } = asking;
  let current = draft;
  for (const hook of hooks) {
    if (!hook[event]) continue;
    const copy = structuredClone(current);
    const given = await ask(hook, copy);
    current = read(copy, schema, asking, ctx) ?? current;
    const answer = read(given, answers, asking, ctx);
    if (answer && answer[0] !== "Continue" && answer[0] !== "Finish") return { draft: current, answer };
    const foreign = reportForeign(given, answer?.[0], asking, ctx);
    if (foreign) return { draft: current, answer: undefined, foreign };
  }
  return { draft: current, answer: undefined };
}

/** The events before a call or a prompt: there, a denial counts in whatever form. */
const guards: readonly (keyof YoiHook)[] = ["on_prompt_submit", "pre_tool_call"];

/** Returns the decision in an answer besides its known word. Emits a warning about it, or about other unknown members. A prompt is not asked about. */
function reportForeign(
  given: unknown,
  word: string | undefined,
  { event, point }: { readonly event: keyof YoiHook; readonly point: Point },
  ctx: Scope,
): ForeignDecision | undefined {
  if (word !== undefined && !isObject(given)) return undefined;
  const warn = (message: string) =>
    warnFailed(ctx, { middleware: "yoi_hooks", point, message: `${event} ${message}.` });
  const found = guards.includes(event) ? foreignDecision(given) : undefined;
  if (found && (found.type === "deny" || event === "pre_tool_call")) {
    warn(`${found.type === "deny" ? "denies" : "asks"} in the form of another system: ${found.member}`);
    return found;
  }
  const unknown = word === undefined ? undefined : unknownMembers(given, [word, "type", "reason", "messages"]);
  if (unknown !== undefined) warn(`returned ${unknown}`);
  return undefined;
}

/** Parses a draft or an answer. Emits a warning if it is invalid. */
function read<T>(
  given: unknown,
  schema: z.core.$ZodType<T>,
  { event, point }: { readonly event: keyof YoiHook; readonly point: Point },
  ctx: Scope,
): T | undefined {
  const parsed = z.safeParse(schema, given);
  if (parsed.success) return parsed.data;
  const message = `${event} returned an invalid output: ${describeIssues(parsed.error.issues)}`;
  warnFailed(ctx, { middleware: "yoi_hooks", point, message });
  return undefined;
}
