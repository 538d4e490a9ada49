/**
 * What hooks answer with: one short word for each answer of each point.
 *
 * @module
 */
import type { ContentPart, Message, ToolResult, Usage, UserMessage } from "../protocol/message.ts";
import { noUsage, user } from "../protocol/message.ts";
import type { Answer, Approval, Compaction, ErrorDecision, ModelResponse, RunResult, Stop } from "./points.ts";
import { result } from "./result.ts";
import type { QuestionOptions } from "./scope.ts";

/** At `tool` and `execute`: this is the result. */
export function text(content: string | readonly ContentPart[]): ToolResult {
  return result("ok", content);
}

/** At `tool` and `execute`: the call failed, and the model is told so. */
export function failed(message: string): ToolResult {
  return result("error", message);
}

/** At `tool`: the call is not made, and the model is told why. Nothing further out can turn it into a success. */
export function denied(reason: string): ToolResult {
  return result("denied", reason);
}

/** At `tool` and `execute`: the call is not made now, through no fault of its own. */
export function skipped(reason: string): ToolResult {
  return result("skipped", reason);
}

/** At `approval`: it may run; with `input`, so changed, after being checked and asked once more. */
export function allow({ input }: { readonly input?: unknown } = {}): Approval {
  return input === undefined ? { type: "allow" } : { type: "allow", input };
}

/** At `approval`: it may not run, whatever anybody else says. */
export function deny(reason: string): Approval {
  return { type: "deny", reason };
}

/** At `approval`: a person decides. */
export function ask(question: string, asked: QuestionOptions = {}): Approval {
  return { type: "ask", questions: [question], ...asked };
}

/** At `model`: answers in the model's place. */
export function reply(text: string): ModelResponse {
  return { parts: [{ type: "text", text }], finish: "stop", usage: noUsage, model: "reply", attempts: 0 };
}

/** At `prompt`: the prompt is not taken, and is not kept. */
export function cancelled(reason: string): Answer {
  return { status: "cancelled", text: "", reason };
}

/** At `session` and `subagent`: the run is not begun. */
export function refused(reason: string): RunResult {
  return { status: "cancelled", run: "", session: "", text: "", reason, questions: [], usage: noUsage, messages: [] };
}

/** At `stop`: the agent is done. */
export function finish(): Stop {
  return { type: "finish" };
}

/** At `stop`: the agent goes on, with these messages for the model; a text is said to be from "stop". */
export function continueWith(...messages: readonly (string | UserMessage)[]): Stop {
  return {
    type: "continue",
    messages: messages.map((message) => typeof message === "string" ? user(message, "stop") : message),
  };
}

/** At `stop`: the run pauses with a question to a person. */
export function pause(question: string, asked: QuestionOptions = {}): Stop {
  return { type: "pause", question, ...asked };
}

/** At `compact`: this is the transcript now; `usage` is what it took of a model. */
export function compacted(messages: readonly Message[], { usage }: { readonly usage?: Usage } = {}): Compaction {
  return { type: "compacted", messages, ...(usage && { usage }) };
}

/** At `compact`: the transcript stays as it is. */
export function declined(reason: string): Compaction {
  return { type: "declined", reason };
}

/** At `error`: try again, after so many milliseconds. Default: 0. */
export function tryAgain({ after = 0 }: { readonly after?: number } = {}): ErrorDecision {
  return { type: "retry", after };
}

/** At `error`: go on without it. */
export function skip(): ErrorDecision {
  return { type: "skip" };
}

/** At `error`: the run fails. */
export function abortRun(): ErrorDecision {
  return { type: "abort" };
}
