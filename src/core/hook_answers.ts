/**
 * Answers of hooks: one short function for each answer of each point.
 *
 * @module
 */
import type { Answer, Approval, Compaction, ErrorDecision, ModelResponse, RunResult, Stop } from "./points.ts";
import type { AskOptions } from "./scope.ts";
import {
  type Message,
  noUsage,
  type ResultStatus,
  type ToolResult,
  type Usage,
  user,
  type UserMessage,
} from "../protocol/message.ts";
import type { ContentPart } from "../protocol/part.ts";
import type { QuestionOptions } from "../protocol/question.ts";

/** Creates a result with a status. */
export function result(status: ResultStatus, content: string | readonly ContentPart[]): ToolResult {
  return { type: "result", status, parts: typeof content === "string" ? [{ type: "text", text: content }] : content };
}

/** At `tool` and `execute`: answers the call with this content. */
export function text(content: string | readonly ContentPart[]): ToolResult {
  return result("ok", content);
}

/** At `tool` and `execute`: answers that the call failed. The model reads the message. */
export function failed(message: string): ToolResult {
  return result("error", message);
}

/** At `tool`: denies the call. The model reads the reason. No outer hook can turn it into a success. */
export function denied(reason: string): ToolResult {
  return result("denied", reason);
}

/** At `tool` and `execute`: skips the call. The model reads the reason. */
export function skipped(reason: string): ToolResult {
  return result("skipped", reason);
}

/** At `approval`: allows the call. With `input`, the call is checked again with this input. */
export function allow({ input }: { readonly input?: unknown } = {}): Approval {
  return input === undefined ? { type: "allow" } : { type: "allow", input };
}

/** At `approval`: denies the call. No other hook can allow it. */
export function deny(reason: string): Approval {
  return { type: "deny", reason };
}

/** At `approval`: asks a person. `key` identifies the question for "always allow". Default: its text. */
export function ask(question: string, options: AskOptions = {}): Approval {
  return { type: "ask", questions: [question], ...options };
}

/** At `model`: answers in place of the model. */
export function reply(text: string): ModelResponse {
  return { parts: [{ type: "text", text }], finish: "stop", usage: noUsage, model: "reply", attempts: 0 };
}

/** At `prompt`: refuses the prompt. It is not stored. */
export function cancelled(reason: string): Answer {
  return { status: "cancelled", text: "", reason };
}

/** At `session` and `subagent`: refuses the run. At `input`: refuses the messages. They are not stored. */
export function refused(reason: string): RunResult & { readonly status: "cancelled" } {
  return { status: "cancelled", run: "", session: "", text: "", reason, questions: [], usage: noUsage, messages: [] };
}

/** At `stop`: the agent is done. */
export function finish(): Stop {
  return { type: "finish" };
}

/** At `stop`: continues with these messages for the model. A text becomes a user message from "stop". */
export function continueWith(...messages: readonly (string | UserMessage)[]): Stop {
  return {
    type: "continue",
    messages: messages.map((message) => typeof message === "string" ? user(message, "stop") : message),
  };
}

/** At `stop`: pauses the run with a question to a person. */
export function pause(question: string, options: QuestionOptions = {}): Stop {
  return { type: "pause", question, ...options };
}

/** At `compact`: replaces the transcript. `usage` is the number of tokens that this took. */
export function compacted(messages: readonly Message[], { usage }: { readonly usage?: Usage } = {}): Compaction {
  return { type: "compacted", messages, ...(usage && { usage }) };
}

/** At `compact`: keeps the transcript as it is. */
export function declined(reason: string): Compaction {
  return { type: "declined", reason };
}

/** At `error`: tries again after `after` milliseconds: fewer than 2 ** 31, which a timer can wait for. Default: 0. At `execute`, only if `recoverable`. */
export function tryAgain({ after = 0 }: { readonly after?: number } = {}): ErrorDecision {
  return { type: "retry", after };
}

/** At `error`: continues without the failed step. */
export function skip(): ErrorDecision {
  return { type: "skip" };
}

/** At `error`: fails the run. */
export function abortRun(): ErrorDecision {
  return { type: "abort" };
}
