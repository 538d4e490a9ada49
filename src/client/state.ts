/**
 * The state of a run, as a client shows it. It is plain JSON, so that a page can store it.
 *
 * @module
 */
import type { Decider, Decision, Event, FailureCode, FinishReason } from "../protocol/event.ts";
import type { ResultStatus, Usage, UserMessage } from "../protocol/message.ts";
import type { AddedPart, ContentPart } from "../protocol/part.ts";
import type { Question } from "../protocol/question.ts";

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

// The reducer from frames to the state of a run.

/**
 * Adds a frame to the state of a run. A frame that the state contains already, or one that does not follow its last frame, changes nothing: the same object is
 * returned.
 *
 * ```ts
 * import { fold, type Frame, noRun } from "@jizai/jizai/client";
 * import { assertEquals } from "@std/assert";
 *
 * const frames: readonly Frame[] = [
 *   { id: 1, event: { type: "model.started", turn: 1, model: "m" } },
 *   { id: 2, event: { type: "text.delta", turn: 1, part: 0, text: "Hel" } },
 *   { id: 2, event: { type: "text.delta", turn: 1, part: 0, text: "Hel" } },
 *   { id: 3, event: { type: "text.delta", turn: 1, part: 0, text: "lo!" } },
 * ];
 * const { messages } = frames.reduce(fold, noRun);
 * assertEquals(messages, [{ role: "assistant", turn: 1, parts: [{ type: "text", id: 0, text: "Hello!" }] }]);
 * ```
 */
export function fold(state: RunState, { id, event }: Frame): RunState {
  return id === state.at + 1 ? { ...state, ...changeOf(state, event), at: id } : state;
}

/** The changed fields of a part. */
type PartChange = Partial<Omit<CallView, "type" | "id">> & { readonly type?: PartView["type"] };

/** Returns the fields of a state that an event changes. */
function changeOf({ messages }: RunState, event: Event): Partial<RunState> {
  switch (event.type) {
    case "run.started":
      return { run: event.run, session: event.session, status: "running", questions: [] };
    case "prompt.accepted":
      return { messages: [event.prompt] };
    case "steering.injected":
      return { messages: [...messages, ...event.messages] };
    case "model.started": // again, if a pause interrupted the turn
    case "model.reset": {
      const { turn } = event;
      const before = messages.filter((message) => message.turn !== turn);
      return { messages: [...before, { role: "assistant", turn, parts: [] }] };
    }
    case "run.paused":
    case "run.finished":
    case "run.failed":
    case "run.aborted": {
      const { type, ...end } = event;
      return { questions: [], status: type.slice(4) as RunStatus, ...end }; // `run.finished` has its own status
    }
  }
  const last = messages.at(-1);
  const parts = last?.turn && changedParts(last.parts, event);
  return parts ? { messages: messages.with(-1, { ...last, parts }) } : {};
}

/** Returns the parts of the last answer after an event. Returns undefined if the event does not change them. */
function changedParts(parts: readonly PartView[], event: Event): readonly PartView[] | undefined {
  switch (event.type) {
    case "text.delta":
      return changePart(parts, event.part, { type: "text", text: event.text });
    case "reasoning.delta":
      return changePart(parts, event.part, { type: "reasoning", text: event.text });
    case "part.added":
    case "provider_tool.started":
    case "provider_tool.finished":
      return [...parts, { id: event.part, ...event.content }];
    case "model.finished": {
      const { text } = event;
      return text === undefined ? undefined : [
        ...parts.filter((part) => part.type === "reasoning"),
        { type: "text", id: nextId(parts), text },
        ...parts.filter((part) => part.type !== "reasoning" && part.type !== "text"),
      ];
    }
    case "call.ready":
      return changePart(parts, event.call.id, { type: "call", ...event.call, status: "ready" });
    case "call.delta":
    case "tool.started":
    case "tool.progress":
    case "approval.asked":
    case "approval.decided": {
      const { type, turn: _, call, ...change } = event;
      const status = statuses[type] ?? type.split(".")[1] as CallStatus; // the other types end in the status
      return changePart(parts, call, { ...change, type: "call", status });
    }
    case "tool.finished":
      return changePart(parts, event.call, event.result);
    case "subagent.started":
    case "subagent.event":
      return parts.map((part) => part.id === event.call ? { ...part, child: childOf(part as CallView, event) } : part); // only a call has such an id
    default:
      return undefined;
  }
}

const statuses: { readonly [type: string]: CallStatus } = { "call.delta": "writing", "tool.progress": "running" };

/** Returns a number that no part has. Text that a hook held back has a smaller number than the parts before it; a call has a text as its id. */
function nextId(parts: readonly PartView[]): number {
  return 1 + Math.max(-1, ...parts.map(({ id }) => typeof id === "number" ? id : -1));
}

/** Changes a part, or adds it. Text is appended. A call that is complete moves behind the parts that were complete before. */
function changePart(parts: readonly PartView[], id: number | string, change: PartChange): readonly PartView[] {
  const index = parts.findIndex((part) => part.id === id);
  const old = parts[index];
  const text = (old?.text ?? "") + (change.text ?? "");
  const part = { ...old, ...change, id, text } as PartView; // the first change has the type
  return old && change.status !== "ready" ? parts.with(index, part) : [...parts.filter((each) => each !== old), part];
}

/** Returns the state of the subagent that does the work of a call. */
function childOf({ child = noRun }: CallView, event: Extract<Event, { type: `subagent.${"started" | "event"}` }>) {
  if (event.type === "subagent.event") return fold(child, { id: child.at + 1, event: event.event });
  return child.run === event.run ? child : noRun; // it starts again if a pause interrupted it
}
