/**
 * The state of the page. It is plain JSON, so that the page can store it over a reload.
 *
 * @module
 */
import type { Event, HookAct } from "../../../../protocol/event.ts";
import type { Usage } from "../../../../protocol/message.ts";
import type { Question } from "../../../../protocol/question.ts";

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
  /** The prompt of the current run. */
  readonly prompt: string;
  /** The conversation. */
  readonly entries: readonly Entry[];
  /** The model requests of the conversation. */
  readonly turns: readonly Turn[];
  /** The spans of the current run. */
  readonly spans: readonly Span[];
  /** The earlier runs of the conversation, oldest first. */
  readonly past: readonly RunRecord[];
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
  readonly kind: "you" | "agent" | "thought" | "call" | "note";
  readonly turn?: number;
  readonly text: string;
  /** The tool of a call, or the call of the subagent that wrote a text. */
  readonly name?: string;
  /** The input of a call, as text. */
  readonly input?: string;
  /** The status of a call. */
  readonly status?: string;
  /** The decision about a call and its origin, in words. */
  readonly verdict?: string;
  /** The failure that a note reports. */
  readonly failure?: Failure;
}

/** A failure of a run or of a request. */
export interface Failure {
  readonly code: string;
  /** The id under which the server reports the error. Missing for a request that the server refused. */
  readonly id?: string;
  /** The run that failed. Missing if the request failed before its run began. */
  readonly run?: string;
}

/** One model request: its model, and the tokens it used. */
export interface Turn {
  readonly key: string;
  readonly run: string;
  readonly turn: number;
  readonly model: string;
  /** Missing until the response is complete. */
  readonly usage?: Usage;
}

/** A run that is over, with its trace. */
export interface RunRecord {
  readonly run: string;
  readonly prompt: string;
  readonly status: string;
  /** The milliseconds that it took, without its pauses. */
  readonly ms: number;
  readonly spans: readonly Span[];
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
  /** The acts of a hook. A hook that threw because the run was paused or stopped has that act in place of "threw". */
  readonly acts?: readonly (HookAct | "paused" | "stopped")[];
  /** The keys that a hook changed. */
  readonly changed?: readonly string[];
  /** The decision that a hook returned. */
  readonly decided?: string;
  /** The decision about a call and its origin, in words. */
  readonly verdict?: string;
  /** The group of a call: calls of a group run at the same time. */
  readonly group?: string;
}

/** Whether the run of a view is running, or about to begin. */
export function isRunning({ status }: Pick<View, "status">): boolean {
  return status === "running" || status === "starting";
}

/** The most runs whose traces are kept. */
const keptRuns = 30;

/** The view before the first message. */
export const emptyView: View = {
  at: 0,
  status: "idle",
  prompt: "",
  entries: [],
  turns: [],
  spans: [],
  past: [],
  questions: [],
  began: 0,
  waited: 0,
};

/** Returns the view in which a new run of the conversation starts. The run before it is recorded. */
export function startRun(view: View, prompt: string, now: number): View {
  const { session, entries, turns, past } = view;
  return {
    ...emptyView,
    ...(session !== undefined && { session }),
    entries,
    turns,
    past: view.run === undefined ? past : [...past, recordOf(view, now)].slice(-keptRuns),
    prompt,
    status: "starting",
    began: now,
  };
}

/** Returns the record of the current run. */
export function recordOf({ run = "", prompt, status, spans, ...view }: View, now: number): RunRecord {
  const isOver = status !== "running" && status !== "starting" && status !== "paused";
  const ended = Math.max(0, ...spans.map(({ to = 0 }) => to));
  return { run, prompt, status, spans, ms: isOver ? ended : elapsed(view, now) };
}

/** Returns the milliseconds since the run began, without its pauses. */
export function elapsed({ began, waited, pausedSince }: Pick<View, "began" | "waited" | "pausedSince">, now: number) {
  return Math.max(0, (pausedSince ?? now) - began - waited);
}
