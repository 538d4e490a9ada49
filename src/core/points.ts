/**
 * The twelve points of an agent's life: what a hook at each of them sees, what it may change beneath, and what it answers with.
 *
 * ```text
 * session                    opened and closed around every run or resume of a session
 * └ prompt                   from the prompt's arrival to its final answer
 *   ├ turn ×n                one model response and the calls it makes
 *   │ ├ model                one request and its streamed response            again: retry, fallback
 *   │ └ the batch of calls
 *   │   ├ tool   ① in        one call after another, in the model's order
 *   │   │ └ approval         may this call run? sees the final input
 *   │   ├ execute ×N  ②      all at once                                      again: retry
 *   │   └ tool   ③ out       one call after another, in the model's order
 *   └ stop                   the agent is about to finish                     finish, or go on with more messages
 * compact                    around one compaction of the transcript
 * subagent                   around one child run
 * error                      around the handling of one failure               retry, skip, or abort
 * abort                      around the cleanup of a run cut short, once
 * ```
 *
 * @module
 */
import type { Model, ModelRequest } from "../model/model.ts";
import type { CompactTrigger, FinishReason, Point } from "../protocol/event.ts";
import type { Question } from "../protocol/question.ts";
import type {
  AnswerPart,
  AssistantMessage,
  Call,
  CallResult,
  Message,
  ToolResult,
  Usage,
  UserMessage,
} from "../protocol/message.ts";
import type { Limits } from "./limits.ts";
import type { Hook } from "./onion.ts";
import type { Change, QuestionOptions, Scope } from "./scope.ts";
import type { AnyTool, ToolExecutionContext } from "./tool.ts";

/** What a run is made of, and a `session` or `subagent` hook may choose anew. A hook sees tools of any vars, so that it fits every agent. */
export interface Settings {
  /** The model that is asked. */
  readonly model: Model;
  /** What the model is told of its task. */
  readonly instructions: string;
  /** What the model may use. */
  readonly tools: readonly AnyTool<never>[];
  /** What the run may use. */
  readonly limits: Limits;
}

/** At `session`. */
export interface SessionContext<V = unknown> extends Scope<V> {
  /** The session's id. */
  readonly session: string;
  /** Whether the session is new, or known. */
  readonly source: "new" | "resume";
  /** Whether the run goes on after a pause. */
  readonly resumed: boolean;
  /** What the run is made of. */
  readonly settings: Settings;
  /** Added before the first prompt. Append-only: a change gives the longer list. */
  readonly context: readonly string[];
}
/** What `session` may change. */
export interface SessionChange extends Change {
  /** Merged one level: what it says is chosen anew. */
  readonly settings?: Partial<Settings>;
  /** A longer list than the one that was given. */
  readonly context?: readonly string[];
}

/** At `prompt`. */
export interface PromptContext<V = unknown> extends Scope<V> {
  /** What is asked. */
  readonly prompt: UserMessage;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** Added after the prompt. */
  readonly context: readonly string[];
  /** Whether the run goes on after a pause. */
  readonly resumed: boolean;
}
/** What `prompt` may change. Ignored in a resumed run, whose prompt has been accepted. */
export interface PromptChange extends Change {
  /** What is asked instead. */
  readonly prompt?: UserMessage;
  /** A longer list than the one that was given. */
  readonly context?: readonly string[];
}
/** What a prompt came to. */
export interface Answer {
  /** done: the agent finished. limit: a limit was reached. cancelled: the prompt was refused, and is not kept. */
  readonly status: "done" | "limit" | "cancelled";
  /** The final text. */
  readonly text: string;
  /** Why, where it is not simply done. */
  readonly reason?: string;
  /** The structured answer, where the agent has an `output`. */
  readonly output?: unknown;
}

/** At `turn`. */
export interface TurnContext<V = unknown> extends Scope<V> {
  /** From 1. */
  readonly index: number;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** Added to this turn's request, and not kept. */
  readonly context: readonly string[];
  /** Whether the run goes on after a pause. */
  readonly resumed: boolean;
}
/** What `turn` may change. */
export interface TurnChange extends Change {
  /** A longer list than the one that was given. */
  readonly context?: readonly string[];
}
/** One response of the model, and what its calls came to. */
export interface TurnResult {
  /** What the model answered. */
  readonly response: ModelResponse;
  /** What its calls came to, in the model's order. */
  readonly results: readonly CallResult[];
}

/** At `model`. */
export interface ModelContext<V = unknown> extends Scope<V> {
  /** What is sent. Changes are seen by this request alone. */
  readonly request: ModelRequest;
  /** From 1; counted by the engine over every try of this turn. */
  readonly attempt: number;
  /** The turn, from 1. */
  readonly turn: number;
}
/** What `model` may change: the request, merged one level. */
export interface ModelChange extends Change {
  /** What is sent instead, merged one level. */
  readonly request?: Partial<ModelRequest>;
}
/** What a model answered. Made by `reply()` where a hook answers itself. */
export interface ModelResponse {
  /** Text, thought and calls, in their order. */
  readonly parts: readonly AnswerPart[];
  /** Why the model stopped. */
  readonly finish: FinishReason;
  /** Tokens it took. */
  readonly usage: Usage;
  /** The id of the model that answered. */
  readonly model: string;
  /** How many requests it took: said by the engine. */
  readonly attempts: number;
}

/** At `tool`. `I` is the input's type, known where `only(tool, ...)` says which. */
export interface ToolContext<V = unknown, I = unknown> extends Scope<V> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool that will run; none where there is none of that name. */
  readonly tool: AnyTool | undefined;
  /** The name it will run under. */
  readonly name: string;
  /** The input it will run with, as JSON. */
  readonly input: I;
  /** The batch of calls it belongs to. */
  readonly batchId: string;
  /** Its place in the model's order, from 0. */
  readonly index: number;
  /** The turn, from 1. */
  readonly turn: number;
  /** Whether the run goes on after a pause. */
  readonly resumed: boolean;
}
/** What `tool` may change. */
export interface ToolChange<I = unknown> extends Change {
  /** The input that lies beneath. */
  readonly input?: I;
  /** The tool that lies beneath. */
  readonly name?: string;
}

/** At `approval`. */
export interface ApprovalContext<V = unknown, I = unknown> extends Scope<V> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool that would run. */
  readonly tool: AnyTool | undefined;
  /** The name it would run under. */
  readonly name: string;
  /** The final input: what will run. */
  readonly input: I;
  /** The turn, from 1. */
  readonly turn: number;
  /** The answer that a hook gave in place of the tool, if one did. */
  readonly proposed?: ToolResult;
}
/** May this call run? */
export type Approval =
  | { readonly type: "allow"; readonly input?: unknown }
  | ({ readonly type: "ask"; readonly questions: readonly string[] } & QuestionOptions)
  | { readonly type: "deny"; readonly reason: string };

/** At `execute`. */
export interface ExecuteContext<V = unknown, I = unknown> extends ToolExecutionContext<V> {
  /** The call as the model made it. */
  readonly call: Call;
  /** The tool that runs. */
  readonly tool: AnyTool;
  /** The input, parsed. */
  readonly input: I;
}

/** At `stop`. */
export interface StopContext<V = unknown> extends Scope<V> {
  /** What the agent would finish with. */
  readonly message: AssistantMessage;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** How often this run went on already, since its last batch of calls. */
  readonly continuations: number;
  /** How often it may. */
  readonly limit: number;
  /** Whether it is asked again after a pause. */
  readonly resumed: boolean;
}
/** Is the agent done? */
export type Stop =
  | { readonly type: "finish" }
  | { readonly type: "continue"; readonly messages: readonly UserMessage[] }
  | ({ readonly type: "pause"; readonly question: string } & QuestionOptions);

/** At `compact`. */
export interface CompactContext<V = unknown> extends Scope<V> {
  /** Why it is compacted. */
  readonly trigger: CompactTrigger;
  /** The messages so far. */
  readonly transcript: readonly Message[];
  /** What whoever summarizes should mind. */
  readonly instructions: string;
  /** The tokens that it should come down to, estimated: half of what there may be. */
  readonly budget: number;
  /** The model that the run asks. */
  readonly model: Model;
}
/** What `compact` may change. */
export interface CompactChange extends Change {
  /** What whoever summarizes should mind. */
  readonly instructions?: string;
}
/** What a compaction came to, and the tokens it took of a model. */
export type Compaction =
  & (
    | { readonly type: "compacted"; readonly messages: readonly Message[] }
    | { readonly type: "declined"; readonly reason: string }
  )
  & { readonly usage?: Usage };

/** At `subagent`. */
export interface SubagentContext<V = unknown> extends Scope<V> {
  /** The child's name. */
  readonly child: string;
  /** What is asked. */
  readonly prompt: UserMessage;
  /** How deep the child is: 1 beneath a run of its own. */
  readonly depth: number;
  /** The call it runs for. */
  readonly call: string;
  /** What is chosen anew for the child. */
  readonly settings: Partial<Settings>;
}
/** What `subagent` may change. */
export interface SubagentChange extends Change {
  /** What is asked instead. */
  readonly prompt?: UserMessage;
  /** Merged one level: what it says is chosen anew. */
  readonly settings?: Partial<Settings>;
}

/** At `error`. */
export interface ErrorContext<V = unknown> extends Scope<V> {
  /** What was thrown. */
  readonly error: unknown;
  /** Where it was thrown. */
  readonly source: Point;
  /** Whether trying again may help. */
  readonly recoverable: boolean;
  /** From 1: how often this has failed in a row. */
  readonly attempt: number;
  /** The tool it failed in, at `execute`. */
  readonly name?: string;
  /** The call that it failed for, at `execute` and `tool`. */
  readonly call?: Call;
}
/** What to do about a failure. */
export type ErrorDecision =
  | { readonly type: "retry"; readonly after: number }
  | { readonly type: "skip" }
  | { readonly type: "abort" };

/** At `abort`. */
export interface AbortContext<V = unknown> extends Scope<V> {
  /** stop, client-gone, deadline, failure, lost (somebody else took the session), or what `stop()` was given. */
  readonly reason: string;
  /** What the model had said of its last answer, where it was cut. */
  readonly message: AssistantMessage | undefined;
  /** Calls that had no result yet. */
  readonly open: readonly Call[];
  /** Tokens it took. */
  readonly usage: Usage;
}

/** How a run ended. `status` says how; the rest is there whatever it says. */
export interface RunResult<O = unknown> {
  /** done, paused (answer its questions), cancelled (refused by a hook), aborted (stopped), limit (reached), failed. */
  readonly status: "done" | "paused" | "cancelled" | "aborted" | "limit" | "failed";
  /** The run's id. */
  readonly run: string;
  /** What `resume()` takes, and the next `run()` of the same conversation. */
  readonly session: string;
  /** The final answer, or as much of it as there was. */
  readonly text: string;
  /** The structured answer; only where the agent has an `output` and the status is done. */
  readonly output?: O;
  /** Why, where it is not simply done. */
  readonly reason?: string;
  /** What to ask a person, where it is paused. */
  readonly questions: readonly Question[];
  /** Tokens it took. */
  readonly usage: Usage;
  /** The transcript, valid whatever happened. */
  readonly messages: readonly Message[];
  /** What was thrown, where it failed. For the operator: never sent to a client. */
  readonly error?: unknown;
}

/** Hooks that concern one call. */
export interface ToolHooks<V = unknown, I = unknown> {
  /** Around a call: rewrite its input, answer instead of it, change its result. In the model's order, before and after the work. */
  readonly tool?: Hook<ToolContext<V, I>, ToolChange<I>, ToolResult>;
  /** May this call run? A deny is final; an error denies. */
  readonly approval?: Hook<ApprovalContext<V, I>, Change, Approval>;
  /** Around the work itself, in parallel: timing, retry, timeout, cache, locks. `next()` may be called again. */
  readonly execute?: Hook<ExecuteContext<V, I>, Change, ToolResult>;
}

/** A named bundle of hooks and tools. The first in `use` is the outermost. */
export interface Middleware<V = unknown> extends ToolHooks<V> {
  /** For errors, traces, and the order that others declare. Default: its place in `use`. */
  readonly name?: string;
  /** Names of middleware that have to stand before it in `use`, where they are used. */
  readonly after?: readonly string[];
  /** Names of middleware that have to be used too, anywhere. */
  readonly requires?: readonly string[];
  /**
   * Whether agents that are tools of the agent have it too, around what is their own: all of it, or nothing. Default: its `approval` alone, so
   * that an agent beneath may be stricter and never looser.
   */
  readonly inherit?: boolean;
  /** Tools it brings. */
  readonly tools?: readonly AnyTool<V>[];
  /** Around every run or resume of a session. */
  readonly session?: Hook<SessionContext<V>, SessionChange, RunResult>;
  /** From a prompt's arrival to its final answer. */
  readonly prompt?: Hook<PromptContext<V>, PromptChange, Answer>;
  /** Around one model response and its calls. */
  readonly turn?: Hook<TurnContext<V>, TurnChange, TurnResult>;
  /** Around one request and its streamed response. `next()` may be called again. */
  readonly model?: Hook<ModelContext<V>, ModelChange, ModelResponse>;
  /** The agent is about to finish. */
  readonly stop?: Hook<StopContext<V>, Change, Stop>;
  /** Around one compaction of the transcript. */
  readonly compact?: Hook<CompactContext<V>, CompactChange, Compaction>;
  /** Around one child run. */
  readonly subagent?: Hook<SubagentContext<V>, SubagentChange, RunResult>;
  /** Around the handling of one failure. */
  readonly error?: Hook<ErrorContext<V>, Change, ErrorDecision>;
  /** Around the cleanup of a run cut short. */
  readonly abort?: Hook<AbortContext<V>, Change, void>;
}
