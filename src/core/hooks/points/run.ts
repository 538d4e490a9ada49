/**
 * The points around a run: session, input, prompt and subagent. The whole lifecycle:
 *
 * ```text
 * session                    opened and closed around every run or resume of a session
 * ├ input                    around every message from outside, before it is accepted
 * └ prompt                   from the prompt's arrival to its final answer
 *   ├ turn ×n                one model response and the calls it makes
 *   │ ├ model                one request and its streamed response            may repeat: retry, fallback
 *   │ └ the batch of calls
 *   │   ├ tool   ① in        one call after another, in the model's order
 *   │   │ └ approval         decides whether the call runs; sees the final input
 *   │   ├ execute ×N  ②      all calls in parallel                            may repeat: retry
 *   │   └ tool   ③ out       one call after another, in the model's order
 *   └ stop                   the agent is about to finish                     finish, or continue with more messages
 * compact                    around one compaction of the transcript
 * subagent                   around one child run
 * error                      around the handling of one failure               retry, skip, or abort
 * abort                      around the cleanup of a run cut short, once
 * ```
 *
 * @module
 */
import type { Model } from "../../../model/model.ts";
import type { Message, Usage, UserMessage } from "../../../protocol/message.ts";
import type { Question } from "../../../protocol/question.ts";
import type { FinishReason } from "../../../protocol/event.ts";
import type { AnyTool } from "../../agent/tool.ts";
import type { Limits } from "../../run/limits.ts";
import type { Change, Scope } from "../scope.ts";

/** The parts of a run that a `session` or `subagent` hook may replace. Tools may need vars of every type, so a hook fits every agent. */
export interface Settings {
  /** The model. */
  readonly model: Model;
  /** The system instructions. */
  readonly instructions: string;
  /** The tools. */
  readonly tools: readonly AnyTool<never>[];
  /** The limits of the run. */
  readonly limits: Limits;
}

/** The context of `session`. */
export interface SessionContext<V = unknown> extends Scope<V> {
  /** The session's id. */
  readonly session: string;
  /** "new" if the session has no messages yet. */
  readonly source: "new" | "resume";
  /** True if the run continues after a pause or a crash. */
  readonly resumed: boolean;
  /** The prompt as it arrived: no `input` hook has reviewed it. Undefined once it is accepted, and in a run that only compacts. */
  readonly prompt?: UserMessage;
  /** The parts of the run. */
  readonly settings: Settings;
  /** Texts to insert before the first prompt. Append-only: a change passes the longer list. */
  readonly context: readonly string[];
}
/** The change of `session`. */
export interface SessionChange extends Change {
  /** Settings to replace. The others stay. */
  readonly settings?: Partial<Settings>;
  /** The given list with more texts. Without the given ones, those of outer hooks are lost. */
  readonly context?: readonly string[];
}

/**
 * The source of messages. prompt: the prompt of a run. history: messages that came with it. steering: a message to a run while it works. reply: the text
 * of a person's answer, or the result of a tool that the client runs. edit: the input to which a person changed a call, as JSON. instructions: those of a
 * compaction on request. client_tool: the name, description and schema of one tool that the client runs, as JSON. format: the JSON Schema of the answer that the
 * client asks for.
 */
export type InputSource =
  | "prompt"
  | "history"
  | "steering"
  | "reply"
  | "edit"
  | "instructions"
  | "client_tool"
  | "format";

/** The context of `input`. */
export interface InputContext<V = unknown> extends Scope<V> {
  /** The source of the messages. */
  readonly source: InputSource;
  /** The messages. Only "history" may have several. */
  readonly messages: readonly Message[];
  /** Texts for the model to insert before the messages. They are kept with the messages, also until another process delivers them. Only "prompt", "history" and "steering" have a place for them. */
  readonly context: readonly string[];
}
/** The change of `input`. */
export interface InputChange extends Change {
  /** The messages to accept instead. Except for "history", it is one user message. Where the message is JSON, its text must stay JSON, or the request is refused. */
  readonly messages?: readonly Message[];
  /** The given list with more texts. Without the given ones, those of outer hooks are lost. Allowed for "prompt", "history" and "steering". */
  readonly context?: readonly string[];
}
/** The accepted messages, or a refusal: `refused()`. A refusal is final, and the messages change only through `next()`. */
export interface InputResult {
  /** accepted: the messages enter the run. cancelled: they are refused, and not stored. */
  readonly status: "accepted" | "cancelled";
  /** The accepted messages, after their context. Empty if they are refused. */
  readonly messages: readonly Message[];
  /** The reason of a refusal. */
  readonly reason?: string;
}

/** The context of `prompt`. */
export interface PromptContext<V = unknown> extends Scope<V> {
  /** The prompt. */
  readonly prompt: UserMessage;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** Texts to insert after the prompt. */
  readonly context: readonly string[];
  /** True if the prompt was accepted before: the run continues after a pause or a crash. */
  readonly resumed: boolean;
}
/** The change of `prompt`. It has no effect on a resumed run, whose prompt is accepted. */
export interface PromptChange extends Change {
  /** The prompt to accept instead. */
  readonly prompt?: UserMessage;
  /** The given list with more texts. Without the given ones, those of outer hooks are lost. */
  readonly context?: readonly string[];
}
/** The answer to a prompt. */
export interface Answer {
  /** done: the agent finished. limit: a limit was reached. cancelled: the prompt was refused and is not stored. */
  readonly status: "done" | "limit" | "cancelled";
  /** The final text. */
  readonly text: string;
  /** The reason, if the status is not "done", or if `finish()` or a hook ended the run. */
  readonly reason?: string;
  /** The structured answer of an agent with an `output`. */
  readonly output?: unknown;
}

/** The context of `subagent`. */
export interface SubagentContext<V = unknown> extends Scope<V> {
  /** The name of the subagent. */
  readonly child: string;
  /** The prompt for the child. */
  readonly prompt: UserMessage;
  /** The depth of the child: 1 below a run that has no parent. */
  readonly depth: number;
  /** The id of the call that the child works for. */
  readonly call: string;
  /** Settings that replace the child's own. */
  readonly settings: Partial<Settings>;
}
/** The change of `subagent`. */
export interface SubagentChange extends Change {
  /** The prompt for the child. */
  readonly prompt?: UserMessage;
  /** Settings to replace. The others stay. */
  readonly settings?: Partial<Settings>;
}

/** The result of a run. */
export interface RunResult<O = unknown> {
  /** done (the agent gave its answer), paused (waits for answers), cancelled (refused or ended by a hook), aborted (stopped), limit (a limit was reached), failed. */
  readonly status: "done" | "paused" | "cancelled" | "aborted" | "limit" | "failed";
  /** The run's id. */
  readonly run: string;
  /** The session's id, for `resume()` and for the next `run()` of the conversation. */
  readonly session: string;
  /** The final answer, or the part of it that exists. */
  readonly text: string;
  /** The structured answer, if the agent has an `output` and the status is "done". */
  readonly output?: O;
  /** The reason, if the status is not "done", or if `finish()` or a hook ended the run. */
  readonly reason?: string;
  /**
   * The finish reason of the last response, if there was one. After "stop" and "calls" the model has ended by itself; otherwise the answer was cut, filtered,
   * refused or is empty, also if the status is "done".
   */
  readonly finish?: FinishReason;
  /** The questions of a paused run. */
  readonly questions: readonly Question[];
  /** The tokens used. */
  readonly usage: Usage;
  /** The transcript. It is always valid. */
  readonly messages: readonly Message[];
  /** The thrown value of a failed run, for the operator. It is never sent to a client. */
  readonly error?: unknown;
}
