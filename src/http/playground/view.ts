/**
 * What the page shows: plain JSON data, so that it outlives a reload.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Question } from "../../protocol/question.ts";

/** An event, and its number in the run. */
export interface Frame {
  readonly id: number;
  readonly event: Event;
}

/** A conversation, and the run it is in. */
export interface View {
  /** The number of the last event that is in it. */
  readonly at: number;
  readonly run?: string;
  readonly session?: string;
  /** idle: none has begun. starting: nothing was heard of it yet. Otherwise where it is, or how it ended. */
  readonly status: string;
  readonly said: readonly Said[];
  /** The run that is shown, as spans of time. */
  readonly spans: readonly Span[];
  /** What waits for the person. */
  readonly questions: readonly Question[];
  readonly resumeToken?: string;
  /** When the run began, in milliseconds since 1970. */
  readonly began: number;
  /** Milliseconds in which it waited for the person. */
  readonly waited: number;
  /** Since when it waits. */
  readonly since?: number;
}

/** Something in the conversation. */
export interface Said {
  readonly key: string;
  readonly who: "you" | "agent" | "thought" | "call" | "note";
  readonly turn?: number;
  readonly text: string;
  /** A call: the tool, what it is given, and where it is. */
  readonly name?: string;
  readonly input?: string;
  readonly status?: string;
}

/** Something that took time. */
export interface Span {
  readonly key: string;
  /** Which place it is, such as `turn 1` or `call call_1`; empty for a hook. */
  readonly of: string;
  /** The key of what it lies beneath; empty for none. */
  readonly under: string;
  /** Whether it is around what it lies beneath, as a hook is around its point; otherwise it is one of the things that happened in that. */
  readonly around: boolean;
  readonly kind: "point" | "call" | "hook";
  /** A hook's point. */
  readonly point?: string;
  readonly name: string;
  /** Milliseconds since the run began. */
  readonly from: number;
  /** Not there while it goes on. */
  readonly to?: number;
  /** What it did, decided, or came to. */
  readonly did: string;
}
