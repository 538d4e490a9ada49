/**
 * The fold: frames in, what the run has come to out.
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
 * Adds a frame to what a run has come to. A frame that is in it already changes nothing, and neither does one with a gap before it: the very same
 * state comes back.
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
  return id === state.at + 1 ? { ...state, ...told(state, event), at: id } : state;
}

/** What is different; nothing where nothing is. */
type Change = Partial<RunState> | undefined;

/** What is new of a part. */
type News = Partial<Omit<CallView, "type" | "id">> & { readonly type?: PartView["type"] };

/** What an event changes. */
function told(state: RunState, event: Event): Change {
  const { messages } = state;
  switch (event.type) {
    case "run.started":
      return { run: event.run, session: event.session, status: "running", questions: [] };
    case "prompt.accepted":
      return { messages: [event.prompt] };
    case "steering.injected":
      return { messages: [...messages, ...event.messages] };
    case "model.started": // again, where a pause had cut the turn short
    case "model.reset": {
      const { turn } = event;
      const before = messages.filter((message) => message.turn !== turn);
      return { messages: [...before, { role: "assistant", turn, parts: [] }] };
    }
    case "text.delta":
      return grow(state, event.part, { type: "text", text: event.text });
    case "reasoning.delta":
      return grow(state, event.part, { type: "reasoning", text: event.text });
    case "model.finished": {
      const { text } = event;
      if (text === undefined) return undefined;
      return say(state, (parts) => [
        ...parts.filter((part) => part.type === "reasoning"),
        { type: "text", id: parts.length, text },
        ...parts.filter((part) => part.type === "call"),
      ]);
    }
    case "call.ready":
      return grow(state, event.call.id, { type: "call", ...event.call, status: "ready" });
    case "call.delta":
    case "tool.started":
    case "tool.progress":
    case "approval.asked":
    case "approval.decided": {
      const { type, turn: _, call, ...news } = event;
      const status = statuses[type] ?? type.split(".")[1] as CallStatus; // the others end in it
      return grow(state, call, { ...news, type: "call", status });
    }
    case "tool.finished":
      return grow(state, event.call, event.result);
    case "subagent.started":
    case "subagent.event":
      return say(state, (parts) =>
        parts.map((part) => {
          const { id, child = noRun } = part as CallView; // text has another id
          if (id !== event.call) return part;
          if (event.type === "subagent.event") {
            return { ...part, child: fold(child, { id: child.at + 1, event: event.event }) };
          }
          return { ...part, child: child.run === event.run ? child : noRun }; // where a pause had stopped it, it goes on
        }));
    case "run.paused":
    case "run.finished":
    case "run.failed":
    case "run.aborted": {
      const { type, ...end } = event;
      return { questions: [], status: type.slice(4) as RunStatus, ...end }; // `finished` says its own status
    }
    default:
      return undefined;
  }
}

const statuses: { readonly [type: string]: CallStatus } = { "call.delta": "writing", "tool.progress": "running" };

/** Adds what is new of a part to it, or begins it. Its text goes on; a call that is complete comes after what was complete before. */
function grow(state: RunState, id: number | string, news: News): Change {
  return say(state, (parts) => {
    const old = parts.find((part) => part.id === id);
    const text = (old?.text ?? "") + (news.text ?? "");
    const part = { id, ...old, ...news, text } as PartView; // what begins one says its type
    return old && news.status !== "ready"
      ? parts.map((each) => each === old ? part : each)
      : [...parts.filter((each) => each !== old), part];
  });
}

/** Changes what the model says now. */
function say({ messages }: RunState, change: (parts: readonly PartView[]) => readonly PartView[]): Change {
  const last = messages.at(-1);
  return last?.turn ? { messages: messages.with(-1, { ...last, parts: change(last.parts) }) } : undefined;
}
