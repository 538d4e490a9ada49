/**
 * Events: what happened in a run, for clients and observers. One flat union, `noun.verb`, plain JSON.
 *
 * ```text
 * run.started
 *   session.opened
 *   prompt.accepted
 *   turn.started
 *     model.started
 *       reasoning.delta*  text.delta*  output.delta*  part.added*  call.delta*  call.ready*
 *       provider_tool.started*  provider_tool.finished*
 *     model.finished
 *     tool.started  approval.asked?  approval.decided  tool.progress*  tool.finished     (per call)
 *   turn.finished
 *   ...
 *   session.closed
 * run.finished | run.paused | run.failed | run.aborted
 * ```
 *
 * @module
 */
import type { FileChange } from "./files.ts";
import type { CallResult, Message, Usage, UserMessage } from "./message.ts";
import type { AddedPart, Call, Json, OutputChange, ProviderCallPart, ProviderResultPart } from "./part.ts";
import type { Question } from "./question.ts";

// Events of one model request and its streamed response.

/**
 * The reason why a response ended:
 *
 * - `stop`: the model was done
 * - `calls`: it made calls
 * - `length`: the response reached the limit of its tokens, or the model's context was full
 * - `filter`: a filter of the provider, or a check, stopped it
 * - `refusal`: the model refused
 * - `empty`: it ended by itself without text, file or call
 * - `other`: the provider gave another reason
 *
 * After `filter` and `refusal`, no call of the response runs. After these and `length` and `other`, calls may be incomplete: they do not run.
 */
export type FinishReason = "stop" | "calls" | "length" | "filter" | "refusal" | "empty" | "other";

/** A change of the conversation that the provider made before the model read it. The transcript keeps the whole conversation. */
export interface ContextEdit {
  /** The kind of the change: it cleared old results of tools or old reasoning, or replaced the conversation so far by a summary. */
  readonly type: "tool_results" | "reasoning" | "compaction";
  /** The tokens that it removed from the request, if the provider reports them. */
  readonly tokens?: number;
  /** The number of calls whose results, or of turns whose reasoning, it cleared. */
  readonly count?: number;
}

/** A piece of a text, a reasoning text or the input of a call. A filter may drop only these three, `part.added`, `provider_tool.*`, `output.delta`, `tool.progress`, `notice` and `data`. */
export type DeltaEvent =
  | { readonly type: "text.delta"; readonly turn: number; readonly part: number; readonly text: string }
  | { readonly type: "reasoning.delta"; readonly turn: number; readonly part: number; readonly text: string }
  | {
    readonly type: "call.delta";
    readonly turn: number;
    readonly call: string;
    readonly name: string;
    readonly text: string;
  };

/** Events of one model request and its streamed response. */
export type ResponseEvent =
  | DeltaEvent
  | { readonly type: "model.started"; readonly turn: number; readonly model: string }
  | { readonly type: "model.reset"; readonly turn: number }
  /** Changes of the partial value of the structured output, derived from the deltas of the text. */
  | { readonly type: "output.delta"; readonly turn: number; readonly changes: readonly OutputChange[] }
  /** A part of the answer that is complete at once, such as a generated file or a source. */
  | {
    readonly type: "part.added";
    readonly turn: number;
    readonly part: number;
    readonly content: Exclude<AddedPart, ProviderCallPart | ProviderResultPart>;
  }
  /** The provider of the model runs a call itself. */
  | {
    readonly type: "provider_tool.started";
    readonly turn: number;
    readonly part: number;
    readonly content: ProviderCallPart;
  }
  /** The provider has run the call. The event is missing if the response ended before. */
  | {
    readonly type: "provider_tool.finished";
    readonly turn: number;
    readonly part: number;
    readonly content: ProviderResultPart;
  }
  | { readonly type: "call.ready"; readonly turn: number; readonly call: Call }
  | {
    readonly type: "model.finished";
    readonly turn: number;
    readonly finish: FinishReason;
    readonly usage: Usage;
    readonly attempts: number;
    /** The final text, where it differs from the deltas. */
    readonly text?: string;
    /** The changes of the conversation that the provider made before the model read it. Default: nothing. */
    readonly edits?: readonly ContextEdit[];
  };

// Events of the start and the end of a run.

/**
 * The kind of a failure:
 *
 * - `rate_limited`: too many requests or tokens
 * - `overloaded`: the provider of the model has no capacity
 * - `unavailable`: the provider is unreachable, failed, cut the response, or is out of credit
 * - `unauthorized`: the key is missing, wrong, or lacks a permission
 * - `context`: the request is larger than the model's context
 * - `internal`: anything else, such as an invalid request
 */
export type FailureCode = "rate_limited" | "overloaded" | "unavailable" | "unauthorized" | "context" | "internal";

/** Events at the start and the end of a run; only the engine emits them. */
export type RunEvent =
  | {
    readonly type: "run.started";
    readonly run: string;
    readonly session: string;
    readonly resumed: boolean;
    /** The id that the server gave to the request that began or resumed the run. */
    readonly request?: string;
    /** The tokens that the run had used before it was resumed. Default: it begins. */
    readonly usage?: Usage;
  }
  | {
    readonly type: "run.finished";
    readonly status: "done" | "cancelled" | "limit";
    readonly text: string;
    readonly reason?: string;
    /** The finish reason of the last response. Default: there was none. */
    readonly finish?: FinishReason;
    readonly output?: unknown;
    readonly usage: Usage;
  }
  | {
    readonly type: "run.paused";
    /** In JSON, a schema that several questions have is in `schemas` of the event once, and `schema` of each is `{ "$ref": "#/schemas/0" }`. */
    readonly questions: readonly Question[];
    readonly usage: Usage;
    /** The session, if the server has no store: the client sends it back with the answers. */
    readonly resumeToken?: string;
  }
  | {
    readonly type: "run.failed";
    /** The id under which `onError` received the error. */
    readonly error: string;
    readonly message: string;
    readonly code: FailureCode;
    /** Milliseconds to wait before the next attempt, if the provider of the model asks for it. */
    readonly retryAfter?: number;
    readonly usage: Usage;
  }
  | { readonly type: "run.aborted"; readonly reason: string; readonly text: string; readonly usage: Usage };

// Events of one call of a tool: its start, the decision about it, and its result.

/** The decision about one call. */
export type Decision = "allow" | "deny";

/** The source of the decision: policy, which is a guard or the tool itself; a person's answer; or a rule that one of them made. */
export type Decider = "policy" | "person" | "rule";

/** Events of one call of a tool. Every event names its turn and the id of its call. */
export type ToolEvent =
  | {
    readonly type: "tool.started";
    readonly turn: number;
    readonly call: string;
    readonly name: string;
    readonly batch: string;
    readonly index: number;
  }
  | ({ readonly type: "approval.asked"; readonly turn: number; readonly call: string } & Question)
  | {
    readonly type: "approval.decided";
    readonly turn: number;
    readonly call: string;
    readonly decision: Decision;
    readonly by: Decider;
    readonly reason?: string;
  }
  | { readonly type: "tool.progress"; readonly turn: number; readonly call: string; readonly data: unknown }
  | { readonly type: "tool.finished"; readonly turn: number; readonly call: string; readonly result: CallResult };

// The union of all events, and the values of their members.

/** A place in the lifecycle. */
export type Point =
  | "session"
  | "input"
  | "prompt"
  | "turn"
  | "model"
  | "tool"
  | "approval"
  | "execute"
  | "stop"
  | "compact"
  | "subagent"
  | "error"
  | "abort";

/** Something that happened in a run. */
export type Event =
  | RunEvent
  | { readonly type: "session.opened"; readonly source: "new" | "resume" }
  | { readonly type: "session.closed" }
  | { readonly type: "prompt.accepted"; readonly prompt: UserMessage }
  | { readonly type: "turn.started"; readonly turn: number }
  | ResponseEvent
  | ToolEvent
  | { readonly type: "turn.finished"; readonly turn: number }
  | { readonly type: "steering.injected"; readonly messages: readonly UserMessage[] }
  | { readonly type: "steering.interrupted" }
  /** A text for the person, which is no part of the answer. */
  | { readonly type: "notice"; readonly text: string }
  | { readonly type: "data"; readonly name: string; readonly data: Json }
  | {
    readonly type: "warning";
    readonly code: WarningCode;
    readonly message: string;
    readonly middleware?: string;
    readonly point?: Point;
    readonly error?: string;
  }
  | { readonly type: "compact.started"; readonly trigger: CompactTrigger }
  | {
    readonly type: "compact.finished";
    readonly trigger: CompactTrigger;
    /** `failed`: the transcript stays as it is; if a provider has refused it, the oldest messages were left out instead. */
    readonly status: "compacted" | "declined" | "failed";
    /** The estimated tokens of the transcript before the compaction. */
    readonly before: number;
    /** The estimated tokens of the transcript after the compaction. */
    readonly after: number;
    /** The reason why it was declined. */
    readonly reason?: string;
  }
  | ({
    readonly type: "file.changed";
    readonly turn?: number;
    /** The call that changed the file; undefined if the change came from outside the run. */
    readonly call?: string;
  } & FileChange)
  | {
    readonly type: "cwd.changed";
    readonly turn: number;
    readonly call: string;
    readonly from: string;
    readonly to: string;
  }
  | {
    readonly type: "instructions.loaded";
    /** The file's path, or the URL. */
    readonly path: string;
    /** The session was opened, or a call entered the directory of the instructions. */
    readonly reason: "session" | "directory";
    readonly turn?: number;
    readonly call?: string;
  }
  | { readonly type: "subagent.started"; readonly call: string; readonly agent: string; readonly run: string }
  | { readonly type: "subagent.event"; readonly call: string; readonly agent: string; readonly event: Event }
  | {
    readonly type: "subagent.finished";
    readonly call: string;
    readonly agent: string;
    readonly status: string;
    /** The text of the unfinished answer, which the model does not receive. */
    readonly text?: string;
  }
  | {
    readonly type: "hook.acted";
    readonly middleware: string;
    readonly point: Point;
    readonly turn?: number;
    readonly call?: string;
    /** The acts of the hook: it answered without the inner layers, changed what they receive or return, or threw. */
    readonly did: readonly HookAct[];
    /** The keys that it passed to `next()`. */
    readonly changed?: readonly string[];
    /** The values that it changed. Only in-process readers and the clients of a server with a page receive them. */
    readonly changes?: readonly HookChange[];
    /** The answer, if the point decides something: an approval, a status. */
    readonly decided?: string;
    readonly ms: number;
  }
  | {
    readonly type: "model.requested";
    readonly turn: number;
    readonly attempt: number;
    readonly instructions: string;
    /** The messages that were sent, without the first ones that `omitted` counts. */
    readonly messages: readonly Message[];
    /** The number of messages that are left out because the event would be too large. */
    readonly omitted: number;
    readonly tools: readonly RequestedTool[];
  };

/** A tool as the model received it. */
export interface RequestedTool {
  /** The name by which the model calls it. */
  readonly name: string;
  /** The purpose of the tool. */
  readonly description: string;
  /** The JSON Schema of its input. */
  readonly schema: { readonly [key: string]: unknown };
}

/** Returns true for the event with which a run ends or pauses. */
export function isLastEvent({ type }: Event): boolean {
  return type.startsWith("run.") && type !== "run.started";
}

/** A value that a hook changed, as JSON. Long texts and lists are cut. */
export interface HookChange {
  /** The path of the value in the context, such as `input` or `request.instructions`. `result` is the value that the hook returned in place of that of the inner layers. */
  readonly key: string;
  /** The value before the change. Undefined if there was none. */
  readonly before?: unknown;
  /** The value after the change. Undefined if there is none. */
  readonly after?: unknown;
  /** The number of items at the start and the end of a list that are left out because they are the same. Undefined if none is. */
  readonly same?: number;
}

/** An observable act of a hook. */
export type HookAct = "passed" | "answered" | "changed" | "replaced" | "retried" | "threw";

/** The cause of a compaction: the transcript exceeded the limit, a request asked for it, or the provider refused a request as too large. */
export type CompactTrigger = "auto" | "manual" | "overflow";

/** The subject of a `warning`. */
export type WarningCode =
  | "transcript.repaired"
  | "transcript.trimmed"
  | "hook.failed"
  | "hook.abandoned"
  | "hook.skipped"
  | "note.dropped"
  | "observer.failed"
  | "response.unread"
  | "tool.abandoned"
  | "tool.removed"
  | "session.unsaved";

/** Emits an event. */
export type Emit = (event: Event) => void;
