/**
 * Runs hooks that were written for yoi's `llm-worker`.
 *
 * @module
 */
import {
  allow,
  cancelled,
  continueWith,
  End,
  type Json,
  type Middleware,
  pause,
  type Scope,
  state,
  user,
  type UserMessage,
} from "../../../mod.ts";
import { atNeededPoints, type Needs } from "../kit/points.ts";
import { messageOf, warnFailed } from "../kit/warn.ts";
import { afterCall, beforeCall, reopenAborted } from "./calls.ts";
import { consult, type YoiHook } from "./hooks.ts";
import { contextSchema, fromDrafts, type Message, messageSchema, toDraft, userMessage } from "./messages.ts";
import { dueResponse, isOpen, markDue, openCalls } from "./open.ts";
import { answers } from "./results.ts";

export type {
  Given,
  HookOptions,
  PostToolCallContext,
  ToolCall,
  ToolCallContext,
  ToolMeta,
  ToolResult,
  YoiHook,
} from "./hooks.ts";
export { type ContentPart, Message, type Role } from "./messages.ts";
export { type OpenCall, openCalls } from "./open.ts";
export {
  OnPromptSubmitResult,
  OnTurnEndResult,
  PostToolCallResult,
  PreLlmRequestResult,
  PreToolCallResult,
} from "./results.ts";

/** Options of `yoi_hooks()`. */
export interface YoiOptions {
  /** The order of hooks at `post_tool_call`, `on_turn_end` and `on_abort`: as listed, or the last first, as in an onion. Default: "listed", as in yoi. */
  readonly outward?: "listed" | "onion";
}

/** The methods that need each point. */
const needs: Needs<keyof YoiHook> = {
  session: ["pre_tool_call", "post_tool_call", "on_abort"],
  prompt: ["on_prompt_submit"],
  model: ["pre_llm_request", "pre_tool_call", "post_tool_call"],
  tool: ["pre_tool_call", "post_tool_call"],
  approval: ["pre_tool_call"],
  stop: ["on_turn_end"],
  error: ["on_abort"],
  abort: ["on_abort"],
};

/** Whether a hook paused the run before it finished. */
const paused = state("yoi_hooks.paused", () => false);
/** The message of the last failure. */
const failure = state("yoi_hooks.failure", () => "");

/**
 * Runs hooks that were written for yoi's `llm-worker`: objects with some of its six methods, one after another in their order. Each receives a draft with the
 * changes of those before it, and its own changes count. An invalid answer is ignored with a `warning`.
 *
 * - `Cancel` refuses the prompt, which is not stored; before a request it ends the run as cancelled.
 * - `Skip` means "not now": the call is answered as skipped, listed in `openCalls()`, reported at the end of the run by an event `data` named `yoi_hooks.open`,
 *   and submitted again by the next run of the session, as a new call with a new id, before the model is asked.
 * - `Pause` pauses the run before the calls of the batch run. On resume, every call of the batch enters again, in a new batch.
 * - `Paused` pauses the run before it finishes. On resume, the model is asked again with the reply of a person.
 * - `Abort` fails the run. The results of the batch are dropped: all of its calls become open calls, also those that have run.
 * - `ContinueWithMessages` continues with messages of the user. Later hooks are not asked.
 *
 * The document of yoi leaves eight questions open. The answers here:
 *
 * 1. A hook that throws fails the run before the calls of its batch run, and `on_abort` fires. With `optional()`, the run continues without the hook.
 * 2. The order decides: each hook sees the changes of those before it, and the first hook that decides is the last one asked.
 * 3. A hook receives a signal, which aborts when the run stops or `within()` finds the hook slow. A hook that ignores it is abandoned.
 * 4. Changes of `on_prompt_submit` are stored. Changes of `pre_llm_request` are for that request only.
 * 5. `ContinueWithMessages` counts as a continuation: the limits `continuations` and `turns` bound it.
 * 6. There are no priorities: the first hook in the list, or in `use`, runs first.
 * 7. `when()` makes hooks conditional on the run; for a tool, the method contains an `if`.
 * 8. A hook is an object that can be called alone; `testMiddleware()` of the testing kit tests the middleware.
 *
 * Differences from the home system:
 *
 * - A skipped call has a result, because providers refuse a request with an open call.
 * - The hooks of a stream (`on_stream_chunk`, `on_text_delta`, `on_tool_call_delta`, `on_stream_complete`) do not exist: the document does not contain them.
 * - An error in `on_abort` does not replace the first error.
 * - `post_tool_call` receives the message of an error as thrown; unless a hook changes the content, the model receives the text of the failed result.
 *
 * Throws a `TypeError` for a method that is no function.
 *
 * ```ts
 * import { agent, tool } from "@jizai/jizai";
 * import { PreToolCallResult, type YoiHook, yoi_hooks } from "@jizai/jizai/middleware/yoi_hooks";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { assertEquals } from "@std/assert";
 * import * as z from "zod";
 *
 * const blocked = new Set(["bash"]);
 * const blocker: YoiHook = {
 *   pre_tool_call: ({ call }) => blocked.has(call.name) ? PreToolCallResult.Skip : PreToolCallResult.Continue,
 * };
 * const formatter: YoiHook = {
 *   post_tool_call({ result }) {
 *     if (!result.is_error) result.content = `[OK] ${result.content}`;
 *   },
 * };
 * const tools = ["bash", "echo"].map((name) =>
 *   tool({ name, description: "Says it again", input: z.object({ text: z.string() }), execute: ({ text }) => text })
 * );
 * const model = scripted({ calls: [["bash", { text: "rm" }], ["echo", { text: "hi" }]] }, "Done.");
 *
 * const { messages } = await agent({ model, tools, use: [yoi_hooks([blocker, formatter])] }).run("Go").result;
 * const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
 * assertEquals(results.map(({ status, parts }) => [status, parts]), [
 *   ["skipped", [{ type: "text", text: "Not run now: it is submitted again later." }]],
 *   ["ok", [{ type: "text", text: "[OK] hi" }]],
 * ]);
 * ```
 */
export function yoi_hooks(hooks: YoiHook | readonly YoiHook[], { outward = "listed" }: YoiOptions = {}): Middleware {
  const inwards = [hooks].flat();
  for (const hook of inwards) {
    const wrong = Object.values(needs).flat().find((event) => !["undefined", "function"].includes(typeof hook[event]));
    if (wrong) throw new TypeError(`Cannot use ${wrong}: expected a function, received ${typeof hook[wrong]}`);
  }
  const outwards = outward === "onion" ? inwards.toReversed() : inwards;
  const has = (event: keyof YoiHook) => inwards.some((hook) => hook[event] !== undefined);
  const all: Middleware & { readonly name: string; readonly inherit: boolean } = {
    name: "yoi_hooks",
    inherit: false,
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
      const { signal } = ctx;
      const { draft, answer } = await consult(inwards, {
        ctx,
        point: "prompt",
        event: "on_prompt_submit",
        ask: (hook, message) => hook.on_prompt_submit?.(message, { signal }),
        draft: toDraft(ctx.prompt),
        schema: messageSchema,
        answers: answers.on_prompt_submit,
      });
      if (answer?.[0] === "Cancel") return cancelled(answer[1]);
      return await next({ prompt: userMessage(draft) });
    },
    async model(ctx, next) {
      const due = dueResponse(ctx);
      if (due) return due;
      if (!has("pre_llm_request")) return await next();
      const { signal, request } = ctx;
      const { draft, answer } = await consult(inwards, {
        ctx,
        point: "model",
        event: "pre_llm_request",
        ask: (hook, context) => hook.pre_llm_request?.(context, { signal }),
        draft: request.messages.map(toDraft),
        schema: contextSchema,
        answers: answers.pre_llm_request,
      });
      if (answer?.[0] === "Cancel") throw ctx.run.end(answer[1], { as: "cancelled" });
      const { messages, system } = fromDrafts(draft, request.messages);
      const instructions = [request.instructions, ...system].filter((text) => text !== "").join("\n\n");
      return await next({ request: { messages, instructions } });
    },
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
    async stop(ctx, next) {
      if (ctx.resumed && paused.get(ctx)) {
        paused.set(ctx, false);
        return continueWith(...replies(ctx));
      }
      const { signal } = ctx;
      const { answer } = await consult(outwards, {
        ctx,
        point: "stop",
        event: "on_turn_end",
        ask: (hook, messages) => hook.on_turn_end?.(messages, { signal }),
        draft: ctx.transcript.map(toDraft),
        schema: contextSchema,
        answers: answers.on_turn_end,
      });
      if (answer?.[0] === "ContinueWithMessages") return continueWith(...answer[1].map(toUserMessage));
      if (answer?.[0] !== "Paused") return await next();
      paused.set(ctx, true);
      return pause("A hook paused the run before it finished. Go on?");
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
  return atNeededPoints(all, needs, has);
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
