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
  type Run,
  type RunResult,
  type Scope,
  type SessionChange,
  type SessionContext,
  type Settings,
  state,
  type StopContext,
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
/** Texts of notification hooks, for the next request. */
const later = state<readonly string[]>("copilot_hooks.later", () => []);
/** The answer of a subagent that a hook has rewritten. */
const rewritten = state<{ readonly response: string } | undefined>("copilot_hooks.rewritten", () => undefined);
/** Whether a hook has kept the agent from stopping. */
const continued = state("copilot_hooks.continued", () => false);

const middleware = "copilot_hooks";

/** The most times in a row that hooks keep an agent from stopping. */
const maxBlocks = 8;

/** Creates the hooks around a session, a message while the run works, a prompt, a turn, a compaction and a stop. */
export function sessionHooks(
  handlers: Handlers,
  models: Readonly<Record<string, Model>>,
  beginning: "startup" | "new",
): Required<Pick<Middleware, "session" | "input" | "prompt" | "turn" | "compact" | "stop">> {
  /** Notifications that hooks are told of in the background. */
  const notifying = new WeakMap<Run, Promise<void>[]>();

  /** Returns an emit function that tells hooks in the background when a person is asked; undefined without such hooks. */
  function notified(ctx: SessionContext): ((event: Event) => void) | undefined {
    if (!handlers.has("onNotification")) return undefined;
    const pending: Promise<void>[] = [];
    notifying.set(ctx.run, pending);
    return (event) => {
      ctx.emit(event);
      if (event.type !== "approval.asked") return;
      const message = `Your permission is needed to use ${event.tool}`;
      const fields = { notification_type: "permission_prompt", title: "Permission needed", message } as const;
      pending.push(
        handlers.ask("onNotification", ctx, "session", fields).then(({ additionalContext }) => { // it never rejects
          if (additionalContext) later.update(ctx, (texts) => [...texts, additionalContext]);
        }),
      );
    };
  }

  /** Runs the session of a subagent. */
  async function subagentSession(
    ctx: SessionContext,
    next: (change?: SessionChange) => Promise<RunResult>,
  ): Promise<RunResult> {
    const { run, resumed, context } = ctx;
    const fields = { transcriptPath: transcriptFile(run) ?? "", agentName: run.agent };
    const { additionalContext: text } = resumed ? {} : await handlers.ask("onSubagentStart", ctx, "session", fields);
    const result = await next(text ? { context: [...context, text] } : undefined);
    const answer = result.status === "done" ? rewritten.get(ctx) : undefined;
    return answer ? { ...result, text: answer.response } : result;
  }

  /** Asks whether an agent or a subagent may stop. Returns the message with which it continues. */
  async function blocked(ctx: StopContext): Promise<string | undefined> {
    const { run, message } = ctx;
    if (run.parent) {
      const agent = { agentId: run.id, agentType: run.agent, agentName: run.agent };
      const fields = { ...agent, transcriptPath: transcriptFile(run) ?? "", response: textOf(message) };
      const { decision, reason, modifiedResponse: response } = await handlers.ask("onSubagentStop", ctx, "stop", {
        ...fields,
        stopReason: "end_turn",
      });
      const isBlocked = decision === "block";
      rewritten.set(ctx, isBlocked || response === undefined ? undefined : { response });
      return isBlocked ? reason || "Go on." : undefined;
    }
    const transcriptPath = transcriptFile(outermostRun(run));
    const { decision, reason } = await handlers.ask("onAgentStop", ctx, "stop", {
      stopReason: "end_turn",
      stopHookActive: continued.get(ctx),
      ...(transcriptPath !== undefined && { transcriptPath }),
    });
    return decision === "block" ? reason || "Go on." : undefined;
  }

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
      if (ctx.run.parent) return await subagentSession(ctx, next);
      const { resumed, source, settings, context } = ctx;
      for (const name of resumed ? [] : handlers.unknown) {
        warnSkipped(ctx, middleware, `${name} never runs: unknown hook.`);
      }
      const started = resumed ? {} : await handlers.ask("onSessionStart", ctx, "session", beginningOf(ctx, beginning));
      const { additionalContext, modifiedConfig = {} } = started;
      if (additionalContext && source === "resume") opening.set(ctx, additionalContext);
      const emit = notified(ctx) ?? ctx.emit;
      const finalText = handlers.has("onSessionEnd") ? holdFinalText({ ...ctx, emit }) : undefined;
      const result = await next({
        settings: settingsOf(modifiedConfig, settings, models, (field) => warnUnused(ctx, field)),
        ...(additionalContext && source === "new" && { context: [...context, additionalContext] }),
        ...(finalText ? { emit: finalText.emit } : emit !== ctx.emit && { emit }),
      });
      await Promise.all(notifying.get(ctx.run) ?? []);
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
    async turn(ctx, next) {
      const texts = ctx.resumed ? [] : later.get(ctx);
      if (texts.length === 0) return await next();
      later.set(ctx, []);
      return await next({ transcript: [...ctx.transcript, user(texts.join("\n\n"), middleware)] });
    },
    async compact(ctx, next) {
      const { run, instructions: customInstructions } = ctx;
      const trigger = ctx.trigger === "manual" ? "manual" : "auto";
      const fields = { transcriptPath: transcriptFile(run) ?? "", trigger, customInstructions } as const;
      await handlers.ask("onPreCompact", ctx, "compact", fields);
      return await next();
    },
    async stop(ctx, next) {
      const text = await blocked(ctx);
      const isCapped = text !== undefined && ctx.continuations >= maxBlocks;
      if (isCapped) {
        warnSkipped(
          ctx,
          middleware,
          `Hooks have kept the agent from stopping ${maxBlocks} times in a row: it stops.`,
          "stop",
        );
      }
      continued.set(ctx, text !== undefined && !isCapped);
      return text === undefined || isCapped ? await next() : continueWith(user(text, middleware));
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
