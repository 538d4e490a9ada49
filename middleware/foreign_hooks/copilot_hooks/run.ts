/**
 * The beginning and the end of a run: what is asked, what came of it, and what failed.
 *
 * @module
 */
import {
  type ErrorContext,
  ModelError,
  type PromptContext,
  type RunResult,
  type SessionContext,
  textOf,
  type UserMessage,
} from "../../../mod.ts";
import type { Given, Handlers } from "./handlers.ts";
import type { ErrorOccurredHookInput, SessionEndHookInput } from "./hooks.ts";

/** Asks about a prompt: gives what is asked instead, what the model is told after it, and whether the person is not shown the answer. */
export async function submitted(handlers: Handlers, ctx: PromptContext): Promise<{
  readonly prompt: UserMessage;
  readonly context: readonly string[];
  readonly hide: boolean;
}> {
  const given = textOf(ctx.prompt);
  const said = await handlers.ask("onUserPromptSubmitted", ctx, "prompt", { prompt: given });
  const { modifiedPrompt: prompt = given, additionalContext, suppressOutput: hide = false } = said;
  const { modifiedTransformedPrompt: text = prompt } = await handlers.ask(
    "onUserPromptTransformed",
    ctx,
    "prompt",
    { prompt, transformedPrompt: prompt },
  );
  return {
    prompt: text === given ? ctx.prompt : { ...ctx.prompt, parts: [{ type: "text", text }, ...mediaOf(ctx.prompt)] },
    context: additionalContext ? [...ctx.context, additionalContext] : ctx.context,
    hide,
  };
}

function mediaOf({ parts }: UserMessage): UserMessage["parts"] {
  return parts.filter((part) => part.type !== "text");
}

/** Tells of a run that has ended; gives whether the person is shown its final answer. */
export async function closed(handlers: Handlers, ctx: SessionContext, result: RunResult): Promise<boolean> {
  const { text: finalMessage, error } = result;
  const { sessionSummary, cleanupActions, suppressOutput = false } = await handlers.ask(
    "onSessionEnd",
    ctx,
    "session",
    { reason: reasonOf(result), finalMessage, ...(error !== undefined && { error: messageOf(error) }) },
  );
  const data = { ...(sessionSummary && { sessionSummary }), ...(cleanupActions && { cleanupActions }) };
  if (Object.keys(data).length > 0) ctx.emit({ type: "data", name: "copilot_hooks.session_end", data });
  return !suppressOutput;
}

function reasonOf({ status, reason }: RunResult): SessionEndHookInput["reason"] {
  if (status === "failed") return "error";
  if (status === "limit") return reason === "deadline" ? "timeout" : "complete";
  if (status === "aborted") return reason === "client-gone" ? "user_exit" : "abort";
  return status === "cancelled" ? "abort" : "complete";
}

const contexts: Readonly<Partial<Record<ErrorContext["source"], ErrorOccurredHookInput["errorContext"]>>> = {
  model: "model_call",
  tool: "tool_execution",
  approval: "tool_execution",
  execute: "tool_execution",
  prompt: "user_input",
};

/** A failure, as hooks are told of it. */
export function failureOf({ error, source, recoverable }: ErrorContext): Given<"onErrorOccurred"> {
  return { error: messageOf(error), errorContext: contexts[source] ?? "system", recoverable };
}

/** How long to wait before another try, in milliseconds: what the provider asks for. */
export function waitOf(error: unknown): number {
  return error instanceof ModelError ? error.retryAfter ?? 0 : 0;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
