/**
 * The messages of one agent as AG-UI events: text, reasoning, and the calls in a message.
 *
 * @module
 */
import type { Call } from "../../protocol/part.ts";
import { frameOf } from "../frames.ts";
import type { AgentMessage, ClientMessage, History } from "./history.ts";

/** The kind of a text that is streamed, as it begins the names of its events. */
export type TextKind = "TEXT" | "REASONING";

/** Fields of every event of a subagent; empty for the agent itself. */
export interface SubagentTag {
  readonly subagentRunId?: string;
}

/** Encodes the messages of one agent. */
export interface MessageEncoder {
  /** Encodes an event of this agent. */
  frame(type: string, fields: object): string;
  /** Begins the message of a turn. */
  begin(id: string): void;
  /** Adds a further message of the turn, such as a result. */
  add(message: ClientMessage): void;
  /** Encodes a piece of text. */
  delta(kind: TextKind, text: string): string;
  /** Replaces the text of the current message. If there is none, encodes one with the text; nothing for an empty text. */
  replaceText(text: string): string;
  /** Encodes a piece of the input of a call, which starts with the first one. */
  callDelta(toolCallId: string, name: string, delta: string): string;
  /** Encodes a complete call. */
  endCall(toolCallId: string, call: Call): string;
  /** Ends the text and the calls that are open. */
  close(): string;
  /** Removes the messages of the turn from the client. */
  discard(): string;
}

/** Creates the encoder of one agent; `tag` names the subagent. */
export function messageEncoder(history: History, tag: SubagentTag): MessageEncoder {
  let id = "";
  let message: AgentMessage | undefined;
  let thought: AgentMessage | undefined;
  /** The messages of the turn that the client has. */
  let ofTurn: ClientMessage[] = [];
  /** The kind of the text that is open, its frame up to the delta, and the frames that end it. */
  let openKind: TextKind | undefined;
  let beforeDelta = "";
  let closing = "";
  const openCalls = new Set<string>();

  function frame(type: string, fields: object): string {
    return frameOf({ type, ...fields, ...tag });
  }

  function add<M extends ClientMessage>(added: M): M {
    history.messages.push(added);
    ofTurn.push(added);
    return added;
  }

  /** The current message, which the client gets once it has content. */
  function current(): AgentMessage {
    return message ??= add<AgentMessage>({ id, role: "assistant", ...tag });
  }

  /** The reasoning of the turn, which is a message of its own. */
  function currentThought(): AgentMessage {
    return thought ??= add<AgentMessage>({ id: `${id}.thought`, role: "reasoning", ...tag });
  }

  function begin(next: string): void {
    id = next;
    message = thought = undefined;
    ofTurn = [];
  }

  /** Clients keep their reasoning if a snapshot has none: so the reasoning of the turn stays, without its text, for the next attempt. */
  function discard(): string {
    const closed = close();
    if (ofTurn.length === 0) return closed;
    const kept = thought;
    if (kept) kept.content = "";
    const { messages } = history;
    messages.splice(0, Infinity, ...messages.filter((each) => each === kept || !ofTurn.includes(each)));
    message = undefined;
    ofTurn = kept ? [kept] : [];
    return closed + history.snapshot();
  }

  function delta(kind: TextKind, text: string): string {
    const opening = openKind === kind ? "" : closeText() + openText(kind);
    const message = kind === "TEXT" ? current() : currentThought();
    message.content = (message.content ?? "") + text;
    return `${opening}${beforeDelta}${JSON.stringify(text)}}\n\n`;
  }

  function openText(kind: TextKind): string {
    const isText = kind === "TEXT";
    const at = { messageId: (isText ? current() : currentThought()).id };
    const outer = (type: string) => isText ? "" : frame(`REASONING_${type}`, at);
    openKind = kind;
    beforeDelta = frameOf({ type: `${kind}_MESSAGE_CONTENT`, ...at, ...tag, delta: "" }).slice(0, -'""}\n\n'.length);
    closing = frame(`${kind}_MESSAGE_END`, at) + outer("END");
    return outer("START") + frame(`${kind}_MESSAGE_START`, { ...at, role: isText ? "assistant" : "reasoning" });
  }

  function closeText(): string {
    const closed = closing;
    openKind = undefined;
    closing = "";
    return closed;
  }

  function close(): string {
    return closeText() + [...openCalls].map(closeCall).join("");
  }

  function callDelta(toolCallId: string, toolCallName: string, delta: string): string {
    let opening = "";
    if (!openCalls.has(toolCallId)) {
      openCalls.add(toolCallId);
      current();
      opening = closeText() + frame("TOOL_CALL_START", { toolCallId, toolCallName, parentMessageId: id });
    }
    return opening + frame("TOOL_CALL_ARGS", { toolCallId, delta });
  }

  function closeCall(toolCallId: string): string {
    openCalls.delete(toolCallId);
    return frame("TOOL_CALL_END", { toolCallId });
  }

  return {
    frame,
    begin,
    add,
    delta,
    callDelta,
    close,
    replaceText(text) {
      const closed = close();
      if (!message) return closed + (text === "" ? "" : delta("TEXT", text) + closeText());
      message.content = text;
      return closed + history.snapshot();
    },
    endCall(toolCallId, { name, input }) {
      const json = JSON.stringify(input) ?? "{}";
      const whole = openCalls.has(toolCallId) ? "" : callDelta(toolCallId, name, json);
      (current().toolCalls ??= []).push({ id: toolCallId, type: "function", function: { name, arguments: json } });
      return whole + closeCall(toolCallId);
    },
    discard,
  };
}
