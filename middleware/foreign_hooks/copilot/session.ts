/**
 * The points `session`, `input`, `prompt` and `stop`.
 *
 * @module
 */
import * as z from "zod";
import type { SessionEndHookInput, SessionStartHookInput } from "./hooks.ts";
import type { Handlers } from "./outputs.ts";
import { outermostRun, transcriptFile, warnFailed, warnSkipped } from "../kit/adapter.ts";
import { readFields } from "../kit/answers.ts";
import { messageOf, replaceText } from "../kit/calls.ts";
import {
  cancelled,
  type Change,
  continueWith,
  type Event,
  type Json,
  type Middleware,
  type Model,
  type Point,
  refused,
  type RunResult,
  type Scope,
  type SessionContext,
  type Settings,
  state,
  textOf,
  user,
  type UserMessage,
} from "../../../mod.ts";

// `modifiedConfig`: the settings that a hook changes for a session.

const names = z.array(z.string());
const fields = {
  model: z.string(),
  systemMessage: z.union([
    z.string().transform((content) => ({ mode: "append" as const, content })),
    z.object({ mode: z.enum(["append", "replace"]).default("append"), content: z.string() }),
  ]),
  availableTools: names,
  excludedTools: names,
};

/** Applies `config` to the settings of a session. `onUnused` receives the fields that have no effect. */
function settingsOf(
  config: Readonly<Record<string, unknown>>,
  { instructions, tools }: Settings,
  models: Readonly<Record<string, Model>>,
  onUnused: (field: string) => void,
): Partial<Settings> {
  const read = readFields(fields, config, onUnused);
  Object.keys(config).filter((field) => !(field in fields)).forEach(onUnused);
  const { systemMessage, availableTools, excludedTools = [] } = read;
  const model = read.model === undefined ? undefined : models[read.model];
  if (read.model !== undefined && !model) onUnused("model");
  const texts = systemMessage?.mode === "append" ? [instructions, systemMessage.content] : [systemMessage?.content];
  return {
    ...(model && { model }),
    ...(systemMessage && { instructions: texts.filter((text) => text).join("\n\n") }),
    ...((availableTools || excludedTools.length > 0) && {
      tools: tools.filter(({ name }) => (availableTools?.includes(name) ?? true) && !excludedTools.includes(name)),
    }),
  };
}

// The hooks at `session`, `input`, `prompt` and `stop`, which change the prompt and hide answers.

/** The context of a hook for a known session. It waits for the prompt. */
const opening = state("copilot_hooks.opening", () => "");
/** Whether the answer is hidden from the person. */
const hidden = state("copilot_hooks.hidden", () => false);
/** Whether a hook has kept the agent from stopping. */
const continued = state("copilot_hooks.continued", () => false);

const middleware = "copilot_hooks";

/** Creates the hooks around a session, a message while the run works, a prompt and a stop. They do not run for subagents. */
export function sessionHooks(
  handlers: Handlers,
  models: Readonly<Record<string, Model>>,
  beginning: "startup" | "new",
): Required<Pick<Middleware, "session" | "input" | "prompt" | "stop">> {
  /** Asks about a message. Returns it, the context for it, and whether a hook hides the answer. */
  async function submitted(ctx: Scope, message: UserMessage, point: Point) {
    const promptText = textOf(message);
    const output = await handlers.ask("onUserPromptSubmitted", ctx, point, { prompt: promptText });
    const { modifiedPrompt: prompt = promptText, additionalContext, suppressOutput = false, foreign } = output;
    const fields = { prompt, transformedPrompt: prompt };
    const transformed = await handlers.ask("onUserPromptTransformed", ctx, point, fields);
    const { modifiedTransformedPrompt: text = prompt } = transformed;
    const denial = [foreign, transformed.foreign].find((each) => each?.type === "deny");
    return {
      ...(denial && { refusal: denial.reason ?? "Refused by a hook." }),
      prompt: text === promptText ? message : replacePrompt(message, text),
      context: additionalContext,
      suppressOutput,
    };
  }

  /** Reports the end of a run. Returns whether the person sees its final answer. */
  async function ended(ctx: SessionContext, result: RunResult): Promise<boolean> {
    const { text: finalMessage, error } = result;
    const fields = { reason: reasonOf(result), finalMessage, ...(error !== undefined && { error: messageOf(error) }) };
    const output = await handlers.ask("onSessionEnd", ctx, "session", fields);
    const { sessionSummary, cleanupActions, suppressOutput = false } = output;
    const data = { ...(sessionSummary && { sessionSummary }), ...(cleanupActions && { cleanupActions }) };
    const json = data as Json; // hooks return plain objects
    if (Object.keys(data).length > 0) ctx.emit({ type: "data", name: "copilot_hooks.session_end", data: json });
    return !suppressOutput;
  }

  return {
    async session(ctx, next) {
      if (ctx.run.parent) return await next();
      const { resumed, source, settings, context } = ctx;
      for (const name of resumed ? [] : handlers.unknown) {
        warnSkipped(ctx, middleware, `${name} never runs: unknown hook.`);
      }
      const started = resumed ? {} : await handlers.ask("onSessionStart", ctx, "session", beginningOf(ctx, beginning));
      const { additionalContext, modifiedConfig = {} } = started;
      if (additionalContext && source === "resume") opening.set(ctx, additionalContext);
      const finalText = handlers.has("onSessionEnd") ? holdFinalText(ctx) : undefined;
      const result = await next({
        settings: settingsOf(modifiedConfig, settings, models, (field) => warnUnused(ctx, field)),
        ...(additionalContext && source === "new" && { context: [...context, additionalContext] }),
        ...(finalText && { emit: finalText.emit }),
      });
      if (result.status === "paused") {
        finalText?.release(true);
        return result;
      }
      const isShown = await ended(ctx, result);
      finalText?.release(isShown);
      return isShown && !hidden.get(ctx) ? result : { ...result, text: "" };
    },
    async prompt(ctx, next) {
      if (ctx.run.parent) return await next();
      if (ctx.resumed) return await next(withoutAnswer(ctx));
      const { refusal, prompt, context: added, suppressOutput } = await submitted(ctx, ctx.prompt, "prompt");
      if (refusal !== undefined) return cancelled(refusal);
      hidden.set(ctx, suppressOutput);
      const texts = [opening.get(ctx), added ?? ""].filter((text) => text !== "");
      return await next({ prompt, context: [...ctx.context, ...texts], ...withoutAnswer(ctx) });
    },
    async input(ctx, next) {
      const [message] = ctx.messages;
      if (ctx.source !== "steering" || message?.role !== "user") return await next();
      const { refusal, prompt, context } = await submitted(ctx, message, "input");
      if (refusal !== undefined) return refused(refusal);
      return await next({ messages: [prompt], context: [...ctx.context, ...context ? [context] : []] });
    },
    async stop(ctx, next) {
      if (ctx.run.parent) return await next();
      const transcriptPath = transcriptFile(outermostRun(ctx.run));
      const { decision, reason } = await handlers.ask("onAgentStop", ctx, "stop", {
        stopReason: "end_turn",
        stopHookActive: continued.get(ctx),
        ...(transcriptPath !== undefined && { transcriptPath }),
      });
      continued.set(ctx, decision === "block");
      return decision === "block" ? continueWith(user(reason || "Go on.", middleware)) : await next();
    },
  };
}

/** Returns the source of a session, and the prompt that it begins with. */
function beginningOf(
  { source, prompt }: SessionContext,
  beginning: "startup" | "new",
): Pick<SessionStartHookInput, "source" | "initialPrompt"> {
  if (source === "resume" || !prompt) return { source };
  return { source: beginning, initialPrompt: textOf(prompt) };
}

/** Returns the change that hides a hidden answer from the person while it streams. */
function withoutAnswer(ctx: Scope): Change {
  if (!hidden.get(ctx)) return {};
  return { emit: (event) => isDelta(event) ? undefined : ctx.emit(event) };
}

/** Holds back the text of a turn until it is known whether it is the final answer and whether the person sees it. */
function holdFinalText({ emit }: Scope) {
  let pending: Event[] = [];
  const release = (isShown: boolean) => {
    const deltas = pending;
    pending = [];
    if (isShown) deltas.forEach(emit);
  };
  return {
    release,
    emit(event: Event) {
      if (isDelta(event)) return void pending.push(event);
      if (event.type === "model.reset") release(false);
      if (event.type === "turn.started" || event.type === "call.ready") release(true);
      emit(event);
    },
  };
}

function isDelta({ type }: Event): boolean {
  return type === "text.delta" || type === "reasoning.delta";
}

function replacePrompt(prompt: UserMessage, text: string): UserMessage {
  return { ...prompt, parts: replaceText(prompt.parts, text) };
}

function reasonOf({ status, reason }: RunResult): SessionEndHookInput["reason"] {
  if (status === "failed") return "error";
  if (status === "limit") return reason === "deadline" ? "timeout" : "complete";
  if (status === "aborted") return reason === "client-gone" ? "user_exit" : "abort";
  return status === "cancelled" ? "abort" : "complete";
}

function warnUnused(ctx: Scope, field: string): void {
  const message = `onSessionStart returned an invalid output: modifiedConfig.${field} has no effect.`;
  warnFailed(ctx, { middleware, point: "session", message });
}
