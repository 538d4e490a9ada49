/**
 * Takes hooks that were written for yoi's `llm-worker`.
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
  type Point,
  type Scope,
  state,
  user,
  type UserMessage,
} from "../../../mod.ts";
import { points } from "../../../src/core/kit.ts";
import { after, before, leaveAborted } from "./calls.ts";
import { consult, type YoiHook } from "./hooks.ts";
import { contextForm, drafted, type Message, messageForm, restored, userMessage } from "./messages.ts";
import { isOpen, madeAgain, makeDue, openCalls } from "./open.ts";
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

/** How hooks are run. */
export interface YoiOptions {
  /**
   * In which order hooks are asked about what came of something, at `post_tool_call`, `on_turn_end` and `on_abort`: in the order they are listed in, or the
   * last first, as an onion has it. Default: "listed", as in yoi.
   */
  readonly outward?: "listed" | "onion";
}

/** At which points which methods are needed. */
const needs: Readonly<Partial<Record<Point, readonly (keyof YoiHook)[]>>> = {
  session: ["pre_tool_call", "post_tool_call", "on_abort"],
  prompt: ["on_prompt_submit"],
  model: ["pre_llm_request", "pre_tool_call", "post_tool_call"],
  tool: ["pre_tool_call", "post_tool_call"],
  approval: ["pre_tool_call"],
  stop: ["on_turn_end"],
  error: ["on_abort"],
  abort: ["on_abort"],
};

/** Whether a hook paused the run when it was about to finish. */
const paused = state("yoi_hooks.paused", () => false);
/** The last failure that was decided about. */
const failure = state("yoi_hooks.failure", () => "");

/**
 * Runs hooks that were written for yoi's `llm-worker`: objects with any of its six methods, one after another in the order they are listed in. Each works on
 * a draft that those before it have left, and what it changes there counts. An answer that is none is left out, and whoever watches is warned.
 *
 * - `Cancel` refuses the prompt, which is not kept; before a request it ends the run, as cancelled.
 * - `Skip` is "not now": the call is answered as skipped, listed in `openCalls()`, told of at the end of the run by an event `data` named `yoi_hooks.open`,
 *   and made again by the next run of the session, as a new call with a new id, before the model is asked.
 * - `Pause` pauses the run before anything of the batch is made. When it goes on, every call of the batch comes in again, in a new batch.
 * - `Paused` pauses the run when it was about to finish. When it goes on, the model is asked again, and told what a person replied.
 * - `Abort` fails the run. Nothing of the batch counts: all of its calls are put off as by `Skip`, also those that were made.
 * - `ContinueWithMessages` goes on with messages, each of them for the model as one of the user. The others are not asked.
 *
 * What yoi's document leaves open is here as follows. `question 1` to `question 8` of this middleware's tests prove it.
 * 1. A hook that throws fails the run, with nothing of its batch made, and `on_abort` is told; `optional()` goes on without it instead.
 * 2. Whatever hooks make of one another is said by their order alone: each sees what those before it changed, and the first that decides is the last that is asked.
 * 3. A hook is given a signal that aborts when the run stops, or when `within()` finds it slow; one that ignores it is left behind after a while.
 * 4. What `on_prompt_submit` changes is kept and seen by everyone after it; what `pre_llm_request` changes is seen by that request alone.
 * 5. `ContinueWithMessages` counts as a continuation, and the limits `continuations` and `turns` bound them.
 * 6. There are no priorities: to come first, stand first, in the list or in `use`.
 * 7. `when()` makes hooks conditional on the run; on a tool, an `if` in the method does.
 * 8. A hook is an object to be called by itself; `testMiddleware()` of the testing kit tests it in all that can happen to a run.
 *
 * Throws a `TypeError` where a method is no function.
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
 *   ["skipped", [{ type: "text", text: "Not made now: it is made again later." }]],
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
  const requests = has("pre_llm_request");
  const all: Middleware = {
    async session(ctx, next) {
      makeDue(ctx);
      const result = await next();
      leaveAborted(ctx, result.messages);
      const { status, reason = status } = result;
      const ended = status === "cancelled" || (status === "failed" && result.error instanceof End);
      if (ended) await tellAbort(outwards, ctx, reason);
      const data = openCalls(ctx).map(({ input, ...call }) => ({ ...call, input: input as Json })); // as the model wrote it
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
        draft: drafted(ctx.prompt),
        form: messageForm,
        answers: answers.on_prompt_submit,
      });
      if (answer?.[0] === "Cancel") return cancelled(answer[1]);
      return await next({ prompt: userMessage(draft) });
    },
    async model(ctx, next) {
      const again = madeAgain(ctx);
      if (again) return again;
      if (!requests) return await next();
      const { signal, request } = ctx;
      const { draft, answer } = await consult(inwards, {
        ctx,
        point: "model",
        event: "pre_llm_request",
        ask: (hook, context) => hook.pre_llm_request?.(context, { signal }),
        draft: request.messages.map(drafted),
        form: contextForm,
        answers: answers.pre_llm_request,
      });
      if (answer?.[0] === "Cancel") throw ctx.run.end(answer[1], { as: "cancelled" });
      const { messages, system } = restored(draft, request.messages);
      const instructions = [request.instructions, ...system].filter((text) => text !== "").join("\n\n");
      return await next({ request: { messages, instructions } });
    },
    async tool(ctx, next) {
      if (!ctx.tool) return await next(); // no hook sees a call of a tool that there is not
      const made = await before(inwards, { ...ctx, tool: ctx.tool });
      return made.type === "result" ? made : await after(outwards, made, await next(made.change));
    },
    async approval(ctx, next) {
      const beneath = await next();
      // nobody need be asked about a call that is not made
      return beneath.type === "ask" && ctx.proposed && isOpen(ctx, ctx.call.id) ? allow() : beneath;
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
        draft: ctx.transcript.map(drafted),
        form: contextForm,
        answers: answers.on_turn_end,
      });
      if (answer?.[0] === "ContinueWithMessages") return continueWith(...answer[1].map(said));
      if (answer?.[0] !== "Paused") return await next();
      paused.set(ctx, true);
      return pause("A hook paused the run before it finished. Go on?");
    },
    async error(ctx, next) {
      failure.set(ctx, ctx.error instanceof Error ? ctx.error.message : String(ctx.error));
      return await next();
    },
    async abort(ctx, next) {
      await next();
      const { reason } = ctx;
      const told = reason === "failure" ? failure.get(ctx) : reason;
      await tellAbort(outwards, ctx, ["failure", "deadline", "lost"].includes(reason) ? told : "Cancelled");
    },
  };
  const wanted = points.filter((point) => needs[point]?.some(has));
  return { name: "yoi_hooks", inherit: false, ...Object.fromEntries(wanted.map((point) => [point, all[point]])) };
}

/** Tells hooks that the run was cut short. One that fails keeps no other from being told, and hides nothing. */
async function tellAbort(hooks: readonly YoiHook[], ctx: Scope, reason: string): Promise<void> {
  const { signal } = ctx;
  for (const hook of hooks) {
    try {
      await hook.on_abort?.(reason, { signal });
    } catch (error) {
      const message = "on_abort failed.";
      const about = { middleware: "yoi_hooks", point: "abort", error: ctx.run.report(error) } as const;
      ctx.emit({ type: "warning", code: "hook.failed", message, ...about });
    }
  }
}

/** What a person said to the run's own question. */
function replies({ run }: Scope): readonly UserMessage[] {
  return run.answers.flatMap((answer) =>
    answer.type === "reply" && answer.callId === undefined ? [user(answer.text)] : []
  );
}

/** A message for the model, as that of the middleware where it does not say whose it is. */
function said(draft: Message): UserMessage {
  return { from: "yoi_hooks", ...userMessage(draft) };
}
