/**
 * The state of a run, as a client shows it. It is plain JSON, so that a page can store it.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import type { FinishReason } from "../protocol/response_event.ts";
import type { FailureCode } from "../protocol/run_event.ts";
import type { Decider, Decision } from "../protocol/tool_event.ts";
import type { Question } from "../protocol/question.ts";
import type { ResultStatus, Usage, UserMessage } from "../protocol/message.ts";
import type { AddedPart, ContentPart } from "../protocol/part.ts";

/** An event and its number in the run. */
export interface Frame {
  /** Its number in the run, from 1. */
  readonly id: number;
  /** The event. */
  readonly event: Event;
}

/** The status of a run: `starting` before its first event, `running`, `paused`, or how it ended. */
export type RunStatus = "starting" | "running" | "paused" | "done" | "limit" | "cancelled" | "failed" | "aborted";

/** The state of a run. It is immutable: each frame creates a new one. */
export interface RunState {
  /** The number of the last frame that it contains, or 0. */
  readonly at: number;
  /** The id of the run, once it has begun. */
  readonly run?: string;
  /** The id of its session, once it has begun. */
  readonly session?: string;
  /** The status of the run. */
  readonly status: RunStatus;
  /** The messages of the run. */
  readonly messages: readonly (PromptView | AnswerView)[];
  /** The open questions, while the run is paused. */
  readonly questions: readonly Question[];
  /** The resume token to send with the answers, if the server uses resume tokens. */
  readonly resumeToken?: string;
  /** The token usage, once the run has ended or paused. */
  readonly usage?: Usage;
  /** The answer, once the run has ended; the partial answer of an aborted run. */
  readonly text?: string;
  /** The structured output, if the agent has one. */
  readonly output?: unknown;
  /** The reason for the end, if there is one. */
  readonly reason?: string;
  /** The finish reason of the last response of a run that has ended: whether the answer was cut, filtered, refused or empty. */
  readonly finish?: FinishReason;
  /** The id of the error of a failed run, for the operator. */
  readonly error?: string;
  /** The kind of the failure of a failed run. */
  readonly code?: FailureCode;
  /** Milliseconds to wait before the next attempt after a failed run, if the provider of the model asks for it. */
  readonly retryAfter?: number;
  /** The message of a failed run, for the user. */
  readonly message?: string;
}

/** A message of the user. It belongs to no turn. */
export interface PromptView extends UserMessage {
  /** Undefined, which distinguishes it from an answer. */
  readonly turn?: undefined;
}

/** The answer of the model in one turn, with its calls. */
export interface AnswerView {
  /** Tells it from messages of the user. */
  readonly role: "assistant";
  /** The turn, from 1. */
  readonly turn: number;
  /** The parts: text in the order in which it began, calls in the order in which they were complete. */
  readonly parts: readonly PartView[];
}

/** A part of an answer. */
export type PartView = TextView | CallView | AddedView;

/** A part that was complete at once, and its number in the turn. */
export type AddedView = AddedPart & { readonly id: number; readonly text?: string };

/** Text or reasoning, as far as it has arrived. */
export interface TextView {
  /** Tells text from reasoning. */
  readonly type: "text" | "reasoning";
  /** Its number in the turn. */
  readonly id: number;
  /** The text. */
  readonly text: string;
}

/**
 * The status of a call. It is `writing` while its input arrives, `ready` when it is complete, `started`, `asked` while a person is asked, `decided`, `running` after
 * its first progress, or the status of its result.
 */
export type CallStatus = "writing" | "ready" | "started" | "asked" | "decided" | "running" | ResultStatus;

/** A call, with the fields of all its events, and those of the question about it. */
export interface CallView extends Partial<Question> {
  /** Tells it from text. */
  readonly type: "call";
  /** The id of the call. */
  readonly id: string;
  /** The name of the tool. */
  readonly name: string;
  /** The status of the call. */
  readonly status: CallStatus;
  /** The JSON text of the input, as far as it was streamed. */
  readonly text: string;
  /** The input: as the model wrote it, and then as the question shows it. */
  readonly input?: unknown;
  /** The reason why the input is not valid JSON, if it is not. */
  readonly malformed?: string;
  /** True if the response ended within the input. */
  readonly incomplete?: boolean;
  /** The id of its batch. */
  readonly batch?: string;
  /** The position in the order of the model. */
  readonly index?: number;
  /** The decision whether it may run. */
  readonly decision?: Decision;
  /** The origin of the decision. */
  readonly by?: Decider;
  /** The reason for a denial. */
  readonly reason?: string;
  /** The last progress of the tool. */
  readonly data?: unknown;
  /** The content of the result. */
  readonly parts?: readonly ContentPart[];
  /** The state of the subagent that does the work, if the tool is one. */
  readonly child?: RunState;
}

/** The state before the first event. */
export const noRun: RunState = { at: 0, status: "starting", messages: [], questions: [] };
