/**
 * The reducer from frames to the state of a run.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import {
  type CallStatus,
  type CallView,
  type Frame,
  noRun,
  type PartView,
  type RunState,
  type RunStatus,
} from "./state.ts";

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
