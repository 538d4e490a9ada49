/**
 * States: what a run has come to, as far as a client has heard. Plain JSON data, safe to keep beside the page that shows it.
 *
 * @module
 */
import type { Decider, Decision, Event } from "../protocol/event.ts";
import type { Question } from "../protocol/question.ts";
import type { ContentPart, ResultStatus, Usage, UserMessage } from "../protocol/message.ts";

/** An event, and its number in the run. */
export interface Frame {
  /** Its number in the run, from 1. */
  readonly id: number;
  /** What happened. */
  readonly event: Event;
}

/** Where a run is: nothing was heard of it yet, it goes on, it waits for a person; or how it ended. */
export type RunStatus = "starting" | "running" | "paused" | "done" | "limit" | "cancelled" | "failed" | "aborted";

/** What a run has come to. It never changes: each frame makes another one. */
export interface RunState {
  /** The number of the last frame that is in it; 0 where none is. */
  readonly at: number;
  /** The run's id, once it has begun. */
  readonly run?: string;
  /** The id of its session, once it has begun. */
  readonly session?: string;
  /** Where it is. */
  readonly status: RunStatus;
  /** What was said in it. */
  readonly messages: readonly (PromptView | AnswerView)[];
  /** What a person is asked, while it is paused. */
  readonly questions: readonly Question[];
  /** What goes back with the answers, where the server keeps nothing. */
  readonly resumeToken?: string;
  /** Tokens, once it has ended or paused. */
  readonly usage?: Usage;
  /** Its answer, once it has ended; what there was of it, where it was aborted. */
  readonly text?: string;
  /** Its structured output, where it has one. */
  readonly output?: unknown;
  /** Why it ended as it did, where that was said. */
  readonly reason?: string;
  /** What it failed with: an id that its operator knows. */
  readonly error?: string;
  /** What may be said of the failure. */
  readonly message?: string;
}

/** What the person says: before the first turn, or between two, and so in none. */
export interface PromptView extends UserMessage {
  /** None. */
  readonly turn?: undefined;
}

/** What the model says in one turn, and the calls it makes, while they happen. */
export interface AnswerView {
  /** Tells it from what the person says. */
  readonly role: "assistant";
  /** The turn, from 1. */
  readonly turn: number;
  /** What is said and called: text in the order in which it began, calls in the order in which they were complete. */
  readonly parts: readonly PartView[];
}

/** A piece of what the model says. */
export type PartView = TextView | CallView;

/** Text or thought, as far as it has come. */
export interface TextView {
  /** Which of them it is. */
  readonly type: "text" | "reasoning";
  /** Its number in the turn. */
  readonly id: number;
  /** The text itself. */
  readonly text: string;
}

/**
 * Where a call is: its input is being written, it is complete, it was taken up, a person is asked, it was decided whether it may run, it says how far
 * it is; or how it ended.
 */
export type CallStatus = "writing" | "ready" | "started" | "asked" | "decided" | "running" | ResultStatus;

/** A call, from the first letter of its input to its result: all that its events said of it. What a person is asked, where one is, is in it too. */
export interface CallView extends Partial<Question> {
  /** Tells it from text. */
  readonly type: "call";
  /** The call's id. */
  readonly id: string;
  /** The tool that the model calls. */
  readonly name: string;
  /** Where it is. */
  readonly status: CallStatus;
  /** The JSON text of its input, as far as it was streamed. */
  readonly text: string;
  /** Its input: as the model made it, and then as a person is asked about it. */
  readonly input?: unknown;
  /** Why its input could not be read, where it could not. */
  readonly malformed?: string;
  /** The batch that it is in. */
  readonly batch?: string;
  /** Its place in the model's order. */
  readonly index?: number;
  /** Whether it may run. */
  readonly decision?: Decision;
  /** Who decided. */
  readonly by?: Decider;
  /** Why it may not. */
  readonly reason?: string;
  /** What the tool said last of how far it is. */
  readonly data?: unknown;
  /** What it came to. */
  readonly parts?: readonly ContentPart[];
  /** What the agent that does the work has come to, where one does. */
  readonly child?: RunState;
}

/** A run of which nothing was heard yet. */
export const noRun: RunState = { at: 0, status: "starting", messages: [], questions: [] };
