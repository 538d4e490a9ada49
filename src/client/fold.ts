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

/** The changed fields of a state. */
type Change = Partial<RunState> | undefined;

/** The changed fields of a part. */
type PartChange = Partial<Omit<CallView, "type" | "id">> & { readonly type?: PartView["type"] };

/** Returns the fields that an event changes. */
function changeOf(state: RunState, event: Event): Change {
  const { messages } = state;
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
    case "text.delta":
      return updatePart(state, event.part, { type: "text", text: event.text });
    case "reasoning.delta":
      return updatePart(state, event.part, { type: "reasoning", text: event.text });
    case "part.added":
    case "provider_tool.started":
    case "provider_tool.finished":
      return updateParts(state, (parts) => [...parts, { id: event.part, ...event.content }]);
    case "model.finished": {
      const { text } = event;
      if (text === undefined) return undefined;
      return updateParts(state, (parts) => [
        ...parts.filter((part) => part.type === "reasoning"),
        { type: "text", id: nextId(parts), text },
        ...parts.filter((part) => part.type !== "reasoning" && part.type !== "text"),
      ]);
    }
    case "call.ready":
      return updatePart(state, event.call.id, { type: "call", ...event.call, status: "ready" });
    case "call.delta":
    case "tool.started":
    case "tool.progress":
    case "approval.asked":
    case "approval.decided": {
      const { type, turn: _, call, ...change } = event;
      const status = statuses[type] ?? type.split(".")[1] as CallStatus; // the other types end in the status
      return updatePart(state, call, { ...change, type: "call", status });
    }
    case "tool.finished":
      return updatePart(state, event.call, event.result);
    case "subagent.started": // again, if a pause interrupted it
      return updateChild(state, event.call, (child) => child.run === event.run ? child : noRun);
    case "subagent.event":
      return updateChild(state, event.call, (child) => fold(child, { id: child.at + 1, event: event.event }));
    case "run.paused":
    case "run.finished":
    case "run.failed":
    case "run.aborted": {
      const { type, ...end } = event;
      return { questions: [], status: type.slice(4) as RunStatus, ...end }; // `run.finished` has its own status
    }
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
function updatePart(state: RunState, id: number | string, change: PartChange): Change {
  return updateParts(state, (parts) => {
    const index = parts.findIndex((part) => part.id === id);
    const old = parts[index];
    const text = (old?.text ?? "") + (change.text ?? "");
    const part = { id, ...old, ...change, text } as PartView; // the first change has the type
    return old && change.status !== "ready" ? parts.with(index, part) : [...parts.filter((each) => each !== old), part];
  });
}

/** Changes the state of the subagent that does the work of a call. */
function updateChild(state: RunState, call: string, change: (child: RunState) => RunState): Change {
  return updateParts(state, (parts) =>
    parts.map((part) => {
      const { id, child = noRun } = part as CallView; // only a call has the id of a call
      return id === call ? { ...part, child: change(child) } : part;
    }));
}

/** Changes the parts of the last answer. */
function updateParts({ messages }: RunState, change: (parts: readonly PartView[]) => readonly PartView[]): Change {
  const last = messages.at(-1);
  return last?.turn ? { messages: messages.with(-1, { ...last, parts: change(last.parts) }) } : undefined;
}
