/**
 * The prompt of a run, and messages to a run while it works: `prompt.submit` and `turn.start`.
 *
 * @module
 */
import type { Data } from "./patterns.ts";
import { type At, type ModRun, type ModRuns, name } from "./run.ts";
import { appendedText } from "./session_view.ts";
import { replaceText } from "../kit/calls.ts";
import {
  cancelled,
  continueWith,
  type Middleware,
  refused,
  state,
  textOf,
  user,
  type UserMessage,
} from "../../../mod.ts";

/** True once the turn of a run has begun, as mods count turns. */
export const turnBegan = state("mods.turn", () => false);

/** A prompt that mods have accepted, or the reason why one of them dropped it. */
type Submitted = { readonly message: UserMessage; readonly context: readonly string[] } | { readonly drop: string };

/** Asks the mods about a prompt. The chain ends before the turn begins. */
async function submit(run: ModRun, at: At, message: UserMessage, more: Data): Promise<Submitted> {
  const text = textOf(message);
  const media = message.parts.flatMap((part) => part.type === "media" ? [{ type: part.mediaType, url: part.url }] : []);
  const { options: { origin = "sdk", classic } } = run;
  const e = { text, ...(media.length > 0 && { attachments: media }), origin: { kind: origin }, wait: false, ...more };
  const core = async ({ text, context }: Data): Promise<Data> => {
    const passed = { text, ...(context !== undefined && { context }) };
    return await classic?.submit(run, at, passed) ?? passed;
  };
  const answer = await run.raise("prompt.submit", e, core, at);
  if (answer.drop !== undefined) return { drop: String(answer.drop) };
  return {
    message: changedText(message, String(answer.text)),
    context: Array.isArray(answer.context) ? answer.context.map(String) : [],
  };
}

/** Creates the hooks at `prompt`, `input` and `stop`. */
export function promptHooks(runs: ModRuns): Pick<Middleware, "prompt" | "input" | "stop"> {
  return {
    async input(ctx, next) {
      const [message] = ctx.messages;
      if (ctx.source !== "steering" || message?.role !== "user") return await next();
      const run = await runs.of(ctx);
      if (!submits(run)) return await next();
      const submitted = await submit(run, { ctx, point: "input" }, message, { turnId: ctx.run.id });
      if ("drop" in submitted) return refused(submitted.drop);
      return await next({ messages: [submitted.message], context: [...ctx.context, ...submitted.context] });
    },
    async prompt(ctx, next) {
      if (ctx.run.parent) return await next();
      const run = await runs.of(ctx);
      run.messages = ctx.resumed ? ctx.transcript : [...ctx.transcript, ctx.prompt];
      if (ctx.resumed) return await next();
      const at: At = { ctx, point: "prompt" };
      const { prompt } = ctx;
      const submitted: Submitted = submits(run) ? await submit(run, at, prompt, {}) : { message: prompt, context: [] };
      if ("drop" in submitted) return cancelled(submitted.drop);
      const { context } = submitted;
      const message = await appendedPrompt(run, at, submitted.message);
      turnBegan.set(ctx, true);
      const turnId = ctx.run.id;
      if (run.has("turn.start")) {
        await run.raise("turn.start", { text: textOf(message), turnId }, () => Promise.resolve({ turnId }), at);
      }
      return await next({
        ...(message !== prompt && { prompt: message }),
        ...(context.length > 0 && { context: [...ctx.context, ...context] }),
      });
    },
    async stop(ctx, next) {
      const run = await runs.of(ctx);
      const decision = await (run.options.classic?.stop(run, ctx, next) ?? next());
      if (ctx.run.parent || decision.type !== "finish") return decision;
      const texts = run.submitted.splice(0);
      return texts.length === 0
        ? decision
        : continueWith(...texts.map(({ mod, text }) => user(text, `${name}: ${mod}`)));
    },
  };
}

/** Returns the prompt as `session.append` leaves it. */
async function appendedPrompt(run: ModRun, at: At, message: UserMessage): Promise<UserMessage> {
  const text = textOf(message);
  const block = { type: "text", text };
  const [changed = text] = await appendedText(run, at, "prompt", { type: "user", role: "user", content: [block] });
  return changedText(message, changed);
}

/** Returns the message with a text; the same message if that is its text. */
function changedText(message: UserMessage, changed: string): UserMessage {
  return changed === textOf(message) ? message : { ...message, parts: replaceText(message.parts, changed) };
}

function submits(run: ModRun): boolean {
  return run.has("prompt.submit") || run.options.classic !== undefined;
}
