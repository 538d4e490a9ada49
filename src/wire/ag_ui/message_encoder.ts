/**
 * The messages of one agent as AG-UI events: text, reasoning, and the calls in a message.
 *
 * @module
 */
import type { Call } from "../../protocol/part.ts";
import { frameOf } from "../frames.ts";
import type { AgentMessage, History } from "./history.ts";

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
  /** Begins a message. A message that begins again is removed from the client. */
  begin(id: string): string;
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
  /** Removes the current message from the client. */
  discard(): string;
}

/** Creates the encoder of one agent; `tag` names the subagent. */
export function messageEncoder(history: History, tag: SubagentTag): MessageEncoder {
  let id = "";
  let message: AgentMessage | undefined;
  /** The kind of the text that is open, its frame up to the delta, and the frames that end it. */
  let openKind: TextKind | undefined;
  let beforeDelta = "";
  let closing = "";
  const openCalls = new Set<string>();

  function frame(type: string, fields: object): string {
    return frameOf({ type, ...fields, ...tag });
  }

  /** The current message, which the client gets once it has content. */
  function current(): AgentMessage {
    if (message) return message;
    const begun: AgentMessage = { id, role: "assistant", ...tag };
    history.messages.push(begun);
    return message = begun;
  }

  function begin(next: string): string {
    const discarded = next === id ? discard() : "";
    id = next;
    message = undefined;
    return discarded;
  }

  function discard(): string {
    const closed = close();
    if (!message) return closed;
    history.messages.splice(history.messages.indexOf(message), 1);
    message = undefined;
    return closed + history.snapshot();
  }

  function delta(kind: TextKind, text: string): string {
    const opening = openKind === kind ? "" : closeText() + openText(kind);
    if (kind === "TEXT") {
      const message = current();
      message.content = (message.content ?? "") + text;
    }
    return `${opening}${beforeDelta}${JSON.stringify(text)}}\n\n`;
  }

  function openText(kind: TextKind): string {
    const isText = kind === "TEXT";
    const at = { messageId: isText ? id : `${id}.thought` }; // reasoning is a message of its own
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
