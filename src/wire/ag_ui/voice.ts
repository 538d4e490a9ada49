/**
 * What an agent says, and the agents that are its tools, as events of AG-UI.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { type CallResult, type ContentPart, textOf } from "../../protocol/message.ts";
import { frameOf } from "../frames.ts";

/** What the client has heard of a run, so that it can be told again. */
export interface Told {
  /** The messages of this run, as far as the client has heard them. */
  readonly messages: { readonly id: string }[];
  /** The frames that tell it again. */
  again(): string;
  /** Whether the client has run a call itself. */
  ran(toolCallId: string): boolean;
}

/** What the model says, as far as the client has heard it. */
interface Saying {
  readonly id: string;
  readonly role: "assistant";
  content?: string;
  toolCalls?: object[];
}

const roles = { TEXT: "assistant", REASONING: "reasoning" } as const;

/** One agent that is heard. */
export interface Voice {
  /** The frames of an event. */
  tell(event: Event): string;
  /** A frame of its own. */
  frame(type: string, fields: object): string;
  /** Says a text that is complete. */
  say(id: string, text: string): string;
  /** Ends what it has begun. */
  end(): string;
}

/** The voice of an agent; `within` stands before the ids of its calls, and `tag` says whose they are, where it is a tool of another. */
export function voice(run: string, told: Told, within = "", tag: { readonly subagentRunId?: string } = {}): Voice {
  let step: string | undefined;
  /** What grows, the frame of more of it up to that, and the frames that end it. */
  let growing: keyof typeof roles | undefined;
  let before = "";
  let after = "";
  /** The message that the model is saying. */
  let id = "";
  let message: Saying | undefined;
  const writing = new Set<string>();
  const children = new Map<string, Voice>();

  function frame(type: string, fields: object): string {
    return frameOf({ type, ...fields, ...tag });
  }

  function grow(kind: keyof typeof roles, text: string): string {
    const opening = growing === kind ? "" : stop() + start(kind);
    if (kind === "TEXT") {
      const message = saying();
      message.content = (message.content ?? "") + text;
    }
    return `${opening}${before}${JSON.stringify(text)}}\n\n`;
  }

  function start(kind: keyof typeof roles): string {
    const at = { messageId: kind === "TEXT" ? id : `${id}.thought` }; // a thought has a message of its own
    const around = (what: string) => kind === "TEXT" ? "" : frame(`REASONING_${what}`, at);
    growing = kind;
    before = frameOf({ type: `${kind}_MESSAGE_CONTENT`, ...at, ...tag, delta: "" }).slice(0, -'""}\n\n'.length);
    after = frame(`${kind}_MESSAGE_END`, at) + around("END");
    return around("START") + frame(`${kind}_MESSAGE_START`, { ...at, role: roles[kind] });
  }

  /** Ends what grows. */
  function stop(): string {
    const ended = after;
    growing = undefined;
    after = "";
    return ended;
  }

  function custom(name: string, value: unknown): string {
    return frame("CUSTOM", { name, value });
  }

  /** Ends what the model is saying, its calls too. */
  function finish(): string {
    const calls = [...writing].map((toolCallId) => frame("TOOL_CALL_END", { toolCallId }));
    writing.clear();
    return stop() + calls.join("");
  }

  /** Begins another message. */
  function begin(as: string): void {
    id = as;
    message = undefined;
  }

  /** The message, once something is in it. */
  function saying(): Saying {
    if (message) return message;
    const begun: Saying = { id, role: "assistant", ...tag };
    told.messages.push(begun);
    return message = begun;
  }

  /** Takes back what the model has said in this turn. */
  function reset(): string {
    const ended = finish();
    if (!message) return ended;
    told.messages.splice(told.messages.indexOf(message), 1);
    message = undefined;
    return ended + told.again();
  }

  function say(as: string, text: string): string {
    if (text === "") return "";
    if (id !== as) begin(as);
    return grow("TEXT", text) + stop();
  }

  function startCall(call: string, toolCallName: string): string {
    const toolCallId = within + call;
    if (writing.has(toolCallId)) return "";
    writing.add(toolCallId);
    saying();
    return stop() + frame("TOOL_CALL_START", { toolCallId, toolCallName, parentMessageId: id });
  }

  function ready(call: { readonly id: string; readonly name: string; readonly input: unknown }): string {
    const toolCallId = within + call.id;
    const input = JSON.stringify(call.input) ?? "{}";
    const whole = writing.has(toolCallId)
      ? ""
      : startCall(call.id, call.name) + frame("TOOL_CALL_ARGS", { toolCallId, delta: input });
    writing.delete(toolCallId);
    (saying().toolCalls ??= []).push({
      id: toolCallId,
      type: "function",
      function: { name: call.name, arguments: input },
    });
    return whole + frame("TOOL_CALL_END", { toolCallId });
  }

  function finished(call: string, { status, parts }: CallResult): string {
    const toolCallId = within + call;
    if (told.ran(toolCallId)) return "";
    const content = parts.every(({ type }) => type === "text") ? textOf({ parts }) : parts.map(partOf);
    const id = `${run}.${call}`;
    const result = { role: "tool", toolCallId, content };
    told.messages.push({ id, ...result, ...tag });
    return frame("TOOL_CALL_RESULT", { messageId: id, ...result, metadata: status === "ok" ? undefined : { status } });
  }

  function end(): string {
    const left = [...children.keys()].map((call) => leave(call, "stopped")).join("");
    const ended = left + finish() + (step === undefined ? "" : frame("STEP_FINISHED", { stepName: step }));
    step = undefined;
    return ended;
  }

  /** Ends an agent that is a tool: it is done, it waits, or it failed. */
  function leave(call: string, status: string): string {
    const child = children.get(call);
    if (!child) return "";
    children.delete(call);
    const type = { done: "success", paused: "suspended" }[status];
    return child.end() +
      (type
        ? child.frame("SUBAGENT_FINISHED", { outcome: { type } })
        : child.frame("SUBAGENT_ERROR", { message: status }));
  }

  function tell(event: Event): string {
    switch (event.type) {
      case "text.delta":
        return grow("TEXT", event.text);
      case "reasoning.delta":
        return grow("REASONING", event.text);
      case "turn.started":
        step = `turn ${event.turn}`;
        return frame("STEP_STARTED", { stepName: step });
      case "model.started": {
        const as = `${run}.${event.turn}`;
        const before = as === id ? reset() : ""; // it is asked again, since its process died
        begin(as);
        return before;
      }
      case "model.reset":
        return reset();
      case "call.delta":
        return startCall(event.call, event.name) +
          frame("TOOL_CALL_ARGS", { toolCallId: within + event.call, delta: event.text });
      case "call.ready":
        return ready(event.call);
      case "model.finished": {
        const ended = finish();
        if (event.text === undefined) return ended;
        if (!message) return ended + say(id, event.text);
        message.content = event.text;
        return ended + told.again();
      }
      case "turn.finished":
        return end();
      case "tool.progress":
        return custom(event.type, { toolCallId: within + event.call, data: event.data });
      case "tool.finished":
        return finished(event.call, event.result);
      case "notice":
        return custom(event.type, event.text);
      case "data":
        return event.name === "state"
          ? frame("STATE_SNAPSHOT", { snapshot: event.data })
          : custom(event.name, event.data);
      case "subagent.started": {
        const { call, agent: name, run: subagentRunId } = event;
        const parentToolCallId = within + call;
        const child = voice(subagentRunId, told, `${parentToolCallId}/`, { subagentRunId });
        children.set(call, child);
        return child.frame("SUBAGENT_STARTED", { name, parentToolCallId, parentSubagentRunId: tag.subagentRunId });
      }
      case "subagent.event":
        return children.get(event.call)?.tell(event.event) ?? "";
      case "subagent.finished":
        return leave(event.call, event.status);
      default:
        return "";
    }
  }

  return { frame, tell, say, end };
}

function partOf(part: ContentPart): object {
  if (part.type === "text") return part;
  const { mediaType: mimeType, data, url } = part;
  const type = /^(image|audio|video)/.exec(mimeType)?.[0] ?? "document";
  return { type, source: { type: data === undefined ? "url" : "data", value: data ?? url ?? "", mimeType } };
}
