/**
 * The state of the page. It is plain JSON, so that the page can store it over a reload.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Question } from "../../protocol/question.ts";

/** An event and its number in the run. */
export interface Frame {
  readonly id: number;
  readonly event: Event;
}

/** A conversation and its current run. */
export interface View {
  /** The number of the last event of the run that the view contains. */
  readonly at: number;
  readonly run?: string;
  readonly session?: string;
  /** `idle` before the first run, `starting` before its first event, and then the status of the run. */
  readonly status: string;
  /** The conversation. */
  readonly entries: readonly Entry[];
  /** The spans of the current run. */
  readonly spans: readonly Span[];
  /** The open questions. */
  readonly questions: readonly Question[];
  readonly resumeToken?: string;
  /** The start of the run, in milliseconds since 1970. */
  readonly began: number;
  /** The milliseconds during which the run was paused. */
  readonly waited: number;
  /** The start of the current pause, in milliseconds since 1970. */
  readonly pausedSince?: number;
}

/** One entry of the conversation. */
export interface Entry {
  readonly key: string;
  readonly who: "you" | "agent" | "thought" | "call" | "note";
  readonly turn?: number;
  readonly text: string;
  /** The tool of a call, or the call of the subagent that wrote a text. */
  readonly name?: string;
  /** The input of a call, as text. */
  readonly input?: string;
  /** The status of a call. */
  readonly status?: string;
}

/** A part of the run that took time: a point, a call, or a hook. */
export interface Span {
  readonly key: string;
  /** The scope of the span, such as `turn 1` or `call call_1`; empty for a hook. */
  readonly place: string;
  /** The key of the span that contains this one; empty if none does. */
  readonly parent: string;
  /** Whether it wraps the work of its parent, as a hook wraps its point. */
  readonly isWrapper: boolean;
  readonly kind: "point" | "call" | "hook";
  /** The point of a hook. */
  readonly point?: string;
  readonly name: string;
  /** The start, in milliseconds since the run began. */
  readonly from: number;
  /** The end, in milliseconds since the run began; missing while the span is open. */
  readonly to?: number;
  /** The result, or the decision of a hook. */
  readonly outcome: string;
}
