/**
 * The hooks of the middleware: each asks the methods of yoi's hooks at its point.
 *
 * @module
 */
import { afterCall, beforeCall, dueResponse, isOpen, markDue, openCalls, reopenAborted } from "./calls.ts";
import { consult, type ContentPart, type Message, type YoiHook } from "./hooks.ts";
import { warnFailed } from "../kit/adapter.ts";
import { messageOf } from "../kit/calls.ts";
import {
  allow,
  type AnswerPart,
  type AssistantMessage,
  type CallResult,
  cancelled,
  type ContentPart as OurPart,
  continueWith,
  End,
  type Json,
  type Message as OurMessage,
  type Middleware,
  pause,
  type Scope,
  state,
  textOf,
  type ToolMessage,
  user,
  type UserMessage,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";

// Converts messages to drafts in the form of yoi, which hooks may change, and back. An unchanged message keeps its identity.

/** Converts a message for hooks. */
function toDraft(message: OurMessage): Message {
  if (message.role === "tool") return { role: "user", content: message.results.map(resultPart) };
  const parts = message.parts.map((part): ContentPart => {
    if (part.type === "logprobs") return { ...part, tokens: [...part.tokens] };
    if (part.type !== "call") return { ...part };
    const { id, name, input } = part;
    return { type: "tool_use", id, name, input };
  });
  return {
    role: message.role,
    content: parts.every(({ type }) => type === "text") ? textOf(message) : parts,
    ...(message.role === "user" && message.from !== undefined && { from: message.from }),
  };
}

function resultPart(result: CallResult): ContentPart {
  const { callId, status } = result;
  return { type: "tool_result", tool_use_id: callId, content: textOf(result), is_error: status !== "ok" };
}

/** Converts the drafts of hooks back to messages, and texts for the instructions. */
function fromDrafts(
  drafts: readonly Message[],
  messages: readonly OurMessage[],
): { readonly messages: readonly OurMessage[]; readonly system: readonly string[] } {
  const same = new Map<string, OurMessage[]>();
  for (const message of messages) {
    const text = canonicalJson(toDraft(message));
    same.set(text, [...same.get(text) ?? [], message]);
  }
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  const all = drafts.filter(({ role }) => role !== "system")
    .flatMap((draft) => same.get(canonicalJson(draft))?.shift() ?? toMessages(draft, results));
  const isUnchanged = all.length === messages.length && all.every((message, index) => message === messages[index]);
  return {
    messages: isUnchanged ? messages : all,
    system: drafts.filter(({ role }) => role === "system").map(textIn),
  };
}

function toMessages(draft: Message, results: readonly CallResult[]): readonly OurMessage[] {
  if (draft.role === "assistant") return [assistantMessage(draft)];
  const answered = partsOf(draft).flatMap((part) => {
    if (part.type !== "tool_result") return [];
    const { tool_use_id: callId, content, is_error } = part;
    const { status = "ok", ...result } = results.find((result) => result.callId === callId) ?? { name: "" };
    const kept = (status !== "ok") === is_error ? status : is_error ? "error" as const : "ok" as const;
    return [{ ...result, callId, status: kept, parts: [{ type: "text" as const, text: content }] }];
  });
  const tool: readonly ToolMessage[] = answered.length > 0 ? [{ role: "tool", results: answered }] : [];
  const rest = userMessage(draft);
  return rest.parts.length > 0 ? [...tool, rest] : tool;
}

/** Converts a draft, whatever its role, to a message of the user. */
function userMessage(draft: Message): UserMessage {
  const { from } = draft;
  const parts = partsOf(draft).filter((part): part is OurPart => part.type === "text" || part.type === "media");
  return { ...user("", from), parts };
}

function assistantMessage(draft: Message): AssistantMessage {
  const parts = partsOf(draft).flatMap((part): AnswerPart[] => {
    if (part.type === "text") return [part];
    if (part.type === "tool_use") return [{ ...part, type: "call" }];
    if (part.type === "tool_result") return [];
    return [part as AnswerPart]; // a JSON value, whose missing fields are absent
  });
  return { role: "assistant", parts };
}

function partsOf({ content }: Message): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function textIn(draft: Message): string {
  return partsOf(draft).map((part) => part.type === "text" ? part.text : "").join("");
}

// The hooks at each point, which ask the methods of yoi and apply their answers.

/** The hooks of yoi, in the order in which they are asked on the way in and on the way out. */
export interface Order {
  readonly inwards: readonly YoiHook[];
  readonly outwards: readonly YoiHook[];
}

/** Whether a hook paused the run before it finished. */
const paused = state("yoi_hooks.paused", () => false);
/** The message of the last failure. */
const failure = state("yoi_hooks.failure", () => "");

/** Returns the hooks of every point. */
export function hooksOf(order: Order): Middleware {
  return { ...runHooks(order), ...requestHook(order), ...callHooks(order), ...stopHook(order) };
}

function runHooks({ inwards, outwards }: Order): Pick<Middleware, "session" | "prompt" | "error" | "abort"> {
  return {
    async session(ctx, next) {
      markDue(ctx);
      const result = await next();
      reopenAborted(ctx, result.messages);
      const { status, reason = status } = result;
      const ended = status === "cancelled" || (status === "failed" && result.error instanceof End);
      if (ended) await reportAbort(outwards, ctx, reason);
      const data = openCalls(ctx).map(({ input, ...call }) => ({ ...call, input: input as Json })); // the input of a call is JSON
      if (data.length > 0) ctx.emit({ type: "data", name: "yoi_hooks.open", data });
      return result;
    },
    async prompt(ctx, next) {
      if (ctx.resumed) return await next();
      const { draft, answer, foreign } = await consult(inwards, "on_prompt_submit", ctx, toDraft(ctx.prompt));
      if (answer?.[0] === "Cancel") return cancelled(answer[1]);
      if (foreign?.type === "deny") return cancelled(foreign.reason ?? "Refused by a hook.");
      return await next({ prompt: userMessage(draft) });
    },
    async error(ctx, next) {
      failure.set(ctx, messageOf(ctx.error));
      return await next();
    },
    async abort(ctx, next) {
      await next();
      const { reason, source } = ctx;
      if (source === "hook") return; // reported where the hook ended the run
      const why = reason === "failure" ? failure.get(ctx) : reason;
      await reportAbort(outwards, ctx, ["failure", "deadline", "lost"].includes(reason) ? why : "Cancelled");
    },
  };
}

function requestHook({ inwards }: Order): Pick<Middleware, "model"> {
  return {
    async model(ctx, next) {
      if (ctx.purpose === "summary") return await next();
      const due = dueResponse(ctx);
      if (due) return due;
      if (!inwards.some((hook) => hook.pre_llm_request)) return await next();
      const { request } = ctx;
      const { draft, answer } = await consult(inwards, "pre_llm_request", ctx, request.messages.map(toDraft));
      if (answer?.[0] === "Cancel") throw ctx.run.end(answer[1], { as: "cancelled" });
      const { messages, system } = fromDrafts(draft, request.messages);
      const instructions = [request.instructions, ...system].filter((text) => text !== "").join("\n\n");
      return await next({ request: { messages, instructions } });
    },
  };
}

function callHooks({ inwards, outwards }: Order): Pick<Middleware, "tool" | "approval"> {
  return {
    async tool(ctx, next) {
      if (!ctx.tool) return await next(); // unknown tools run no hook
      const made = await beforeCall(inwards, { ...ctx, tool: ctx.tool });
      return made.type === "result" ? made : await afterCall(outwards, made, await next(made.change));
    },
    async approval(ctx, next) {
      const inner = await next();
      // a skipped call does not run, so no person has to be asked
      return inner.type === "ask" && ctx.proposed && isOpen(ctx, ctx.call.id) ? allow() : inner;
    },
  };
}

function stopHook({ outwards }: Order): Pick<Middleware, "stop"> {
  return {
    async stop(ctx, next) {
      if (ctx.resumed && paused.get(ctx)) {
        paused.set(ctx, false);
        return continueWith(...replies(ctx));
      }
      const { answer } = await consult(outwards, "on_turn_end", ctx, ctx.transcript.map(toDraft));
      if (answer?.[0] === "ContinueWithMessages") return continueWith(...answer[1].map(toUserMessage));
      if (answer?.[0] !== "Paused") return await next();
      paused.set(ctx, true);
      return pause("A hook paused the run before it finished. Go on?");
    },
  };
}

/** Calls `on_abort`. A hook that fails hides neither the first error nor the other hooks. */
async function reportAbort(hooks: readonly YoiHook[], ctx: Scope, reason: string): Promise<void> {
  const { signal } = ctx;
  for (const hook of hooks) {
    try {
      await hook.on_abort?.(reason, { signal });
    } catch (error) {
      warnFailed(ctx, { middleware: "yoi_hooks", point: "abort", message: "on_abort failed.", error });
    }
  }
}

/** Returns the replies of a person to the pause of the run. */
function replies({ run }: Scope): readonly UserMessage[] {
  return run.answers.flatMap((answer) =>
    answer.type === "reply" && answer.callId === undefined ? [user(answer.text)] : []
  );
}

/** Converts a draft to a message of the user, which is from this middleware by default. */
function toUserMessage(draft: Message): UserMessage {
  return { from: "yoi_hooks", ...userMessage(draft) };
}
