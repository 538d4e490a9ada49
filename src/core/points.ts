/**
 * The points of the lifecycle: the context of each, what `next()` may change, and what a hook returns.
 *
 * @module
 */
import type { Limits } from "./limits.ts";
import type { AskOptions, Change, Scope } from "./scope.ts";
import type { AnyTool, ToolExecutionContext } from "./tool.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import type { CompactTrigger, ContextEdit, FinishReason, Point } from "../protocol/event.ts";
import type { AssistantMessage, CallResult, Message, ToolResult, Usage, UserMessage } from "../protocol/message.ts";
import type { AnswerPart, Call } from "../protocol/part.ts";
import type { Question, QuestionOptions } from "../protocol/question.ts";

// The points around a run: session, input, prompt and subagent.

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
 * client asks for. skill: the description, the instructions or a file of a skill that is not trusted.
 */
export type InputSource =
  | "prompt"
  | "history"
  | "steering"
  | "reply"
  | "edit"
  | "instructions"
  | "client_tool"
  | "format"
  | "skill";

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
  /** The id of the child's run. */
  readonly childRun: string;
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

// The points of a turn: turn, model, stop and compact.

/** The context of `turn`. */
export interface TurnContext<V = unknown> extends Scope<V> {
  /** The number of the turn, from 1. */
  readonly index: number;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** Texts to add to this turn's request. They are not stored. */
  readonly context: readonly string[];
  /** True if the turn has saved progress from before a pause or a crash. */
  readonly resumed: boolean;
}
/** The change of `turn`. It has no effect on a resumed turn. */
export interface TurnChange extends Change {
  /** The given list with more texts. Without the given ones, those of outer hooks are lost. */
  readonly context?: readonly string[];
  /** A transcript to continue with instead, such as a compacted one. It is stored. */
  readonly transcript?: readonly Message[];
}
/** One model response and the results of its calls. */
export interface TurnResult {
  /** The model's response. */
  readonly response: ModelResponse;
  /** The results, in the order of the calls. */
  readonly results: readonly CallResult[];
}

/** The context of `model`. */
export interface ModelContext<V = unknown> extends Scope<V> {
  /** The request. Changes affect this request only. */
  readonly request: ModelRequest;
  /** The number of the attempt in this turn, from 1, counted by the engine. */
  readonly attempt: number;
  /** The number of the turn, from 1. Of a summary, that of the turn around it, or 0 in a run that only compacts. */
  readonly turn: number;
  /**
   * turn: the response is one of the conversation. summary: a compaction asks, see `CompactContext.askModel`; the request contains a part of the conversation as
   * a text, no tools, and clients receive nothing of the response. A hook that adds something to the conversation leaves such a request as it is.
   */
  readonly purpose: "turn" | "summary";
}
/** The change of `model`. */
export interface ModelChange extends Change {
  /** Fields of the request to replace. The others stay. */
  readonly request?: Partial<ModelRequest>;
}
/** The response of a model. `reply()` makes one. */
export interface ModelResponse {
  /** Text, reasoning and calls, in order. */
  readonly parts: readonly AnswerPart[];
  /** The reason why the model stopped. */
  readonly finish: FinishReason;
  /** The tokens of the request and the response. */
  readonly usage: Usage;
  /** The id of the model that answered. */
  readonly model: string;
  /** The number of requests, set by the engine. */
  readonly attempts: number;
  /** The provider's id of the response, if it has reported one. */
  readonly id?: string;
  /** The changes of the conversation that the provider made before the model read it. */
  readonly edits?: readonly ContextEdit[];
  /** Milliseconds from the request to the first events of the response. Undefined if a hook has answered. */
  readonly firstChunk?: number;
}

/** The context of `stop`. */
export interface StopContext<V = unknown> extends Scope<V> {
  /** The message that would be the final answer. */
  readonly message: AssistantMessage;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** The number of times that `stop` has continued since the last batch of calls. */
  readonly continuations: number;
  /** The limit of continuations. */
  readonly limit: number;
  /** True if the question was reached before a pause or a crash. */
  readonly resumed: boolean;
}
/** The decision at `stop`. */
export type Stop =
  | { readonly type: "finish" }
  | { readonly type: "continue"; readonly messages: readonly UserMessage[] }
  | ({ readonly type: "pause"; readonly question: string } & QuestionOptions);

/** The context of `compact`. */
export interface CompactContext<V = unknown> extends Scope<V> {
  /** The cause of the compaction. */
  readonly trigger: CompactTrigger;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** Instructions for the summary. */
  readonly instructions: string;
  /** The estimated number of tokens to reach: half of the limit. */
  readonly budget: number;
  /** The model of the run. */
  readonly model: Model;
  /**
   * Sends a request, such as one for a summary, through the `model` hooks of the run: retry, fallback, timeouts, budgets and masks apply to it. They read
   * "summary" as its `purpose`. The fields that are not given are empty; the model is that of the run. Clients receive nothing of the response, and its tokens
   * count for the run. The request stops if `signal` aborts. Default: the signal of the run. Throws what the model or a hook throws.
   */
  readonly askModel: (request: Partial<ModelRequest>, signal?: AbortSignal) => Promise<ModelResponse>;
}
/** The change of `compact`. */
export interface CompactChange extends Change {
  /** Messages to compact instead, such as masked ones. */
  readonly transcript?: readonly Message[];
  /** Instructions for the summary. */
  readonly instructions?: string;
}
/** The result of a compaction, and the tokens it used. */
export type Compaction =
  & (
    | { readonly type: "compacted"; readonly messages: readonly Message[] }
    | { readonly type: "declined"; readonly reason: string }
  )
  & { readonly usage?: Usage };

// The points of a call: tool, approval and execute.

/** The context of `tool`. `I` is the type of the input, known inside `only(tool, ...)`. */
export interface ToolContext<V = unknown, I = unknown> extends Scope<V> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool, or undefined if there is none of that name. */
  readonly tool: AnyTool | undefined;
  /** The name of the tool. */
  readonly name: string;
  /** The input as JSON. */
  readonly input: I;
  /** The id of the batch of calls. */
  readonly batchId: string;
  /** The call's place in the model's order, from 0. */
  readonly index: number;
  /** The number of the turn, from 1. */
  readonly turn: number;
  /** True if the call has saved progress from before a pause or a crash. */
  readonly resumed: boolean;
  /** True if a guard or a person edited the input after the hooks had seen the call: it replaces the input that they left. The hooks run again. */
  readonly edited: boolean;
}
/** The change of `tool`. */
export interface ToolChange<I = unknown> extends Change {
  /** The input for the inner layers. */
  readonly input?: I;
  /** The name of another tool. */
  readonly name?: string;
}

/** The context of `approval`. */
export interface ApprovalContext<V = unknown, I = unknown> extends Scope<V> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool that would run. */
  readonly tool: AnyTool | undefined;
  /** The name of the tool. */
  readonly name: string;
  /** The input that would run, as JSON: after every hook and the tool's schema. One that JSON cannot hold is here as it was before the schema. */
  readonly input: I;
  /** The same as `input`. */
  readonly parsed: unknown;
  /** The input before the tool's schema, as the `tool` hooks left it. An `allow()` with this input changes nothing. */
  readonly unparsed: unknown;
  /** The number of the turn, from 1. */
  readonly turn: number;
  /** The result of a hook that answered in place of the tool. */
  readonly proposed?: ToolResult;
}
/** The decision about one call. */
export type Approval =
  | { readonly type: "allow"; readonly input?: unknown }
  | ({ readonly type: "ask"; readonly questions: readonly string[] } & AskOptions)
  | { readonly type: "deny"; readonly reason: string };

/** The context of `execute`, where `next()` rejects with the error of a tool that throws. */
export interface ExecuteContext<V = unknown, I = unknown> extends Omit<ToolExecutionContext<V>, "step"> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool. */
  readonly tool: AnyTool;
  /** The parsed input. */
  readonly input: I;
  /** Returns true if the tool may run again within this call: it is `idempotent`, or has begun a step. Otherwise a second `next()` rejects. */
  readonly mayRepeat: () => boolean;
}

// The points of a run that fails or is cut short: error and abort.

/** The context of `error`. */
export interface ErrorContext<V = unknown> extends Scope<V> {
  /** The thrown value. */
  readonly error: unknown;
  /** The point where it was thrown. */
  readonly source: Point;
  /** True if another attempt may succeed; at `execute`, if the tool may run again: it is `idempotent`, or has begun a step. */
  readonly recoverable: boolean;
  /** The number of failures in a row, from 1. */
  readonly attempt: number;
  /** The name of the tool, at `execute`. */
  readonly name?: string;
  /** The call, at `execute` and `tool`. */
  readonly call?: Call;
}
/** The decision about a failure. */
export type ErrorDecision =
  | { readonly type: "retry"; readonly after: number }
  | { readonly type: "skip" }
  | { readonly type: "abort" };

/** The context of `abort`. */
export interface AbortContext<V = unknown> extends Scope<V> {
  /** "stop", "client-gone", "deadline", "failure", "lost" (the process died or the session was taken over), the argument of `stop()`, or the reason that a hook gave. */
  readonly reason: string;
  /** The cause: a hook ended the run as failed or cancelled, the run failed, or it was stopped (also by a limit of time, or a takeover). */
  readonly source: "hook" | "failure" | "stop";
  /** The status of the run's result; "aborted" also if the run of a process that has died continues. A text of `stop()` never makes it "limit". */
  readonly status: RunResult["status"];
  /** The text of the unfinished answer, if the model was streaming one. */
  readonly message: AssistantMessage | undefined;
  /** The calls without a result. */
  readonly open: readonly Call[];
  /** The tokens used so far. */
  readonly usage: Usage;
}
