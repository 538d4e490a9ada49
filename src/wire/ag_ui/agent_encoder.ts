/**
 * Events of an agent and its subagents as AG-UI events.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import { type CallResult, textOf } from "../../protocol/message.ts";
import type { ContentPart } from "../../protocol/part.ts";
import { type EventOf, tableEncoder } from "../encoder.ts";
import type { History } from "./history.ts";
import { outputState } from "./output_state.ts";
import { messageEncoder, type SubagentTag } from "./message_encoder.ts";

/** Encodes the events of one agent. */
export interface AgentEncoder {
  /** Encodes an event. */
  encode(event: Event): string;
  /** Encodes an AG-UI event of this agent. */
  frame(type: string, fields: object): string;
  /** Encodes a complete text message; nothing for an empty text. */
  wholeText(id: string, text: string): string;
  /** Ends the subagents, the messages and the step that are open. */
  close(): string;
}

/**
 * Creates the encoder of one agent; `runId` returns the id of its run. `prefix` is the path of the subagent calls that contain its calls, such as `call_1/`,
 * and `tag` names the subagent.
 */
export function agentEncoder(
  runId: () => string,
  history: History,
  prefix = "",
  tag: SubagentTag = {},
): AgentEncoder {
  const messages = messageEncoder(history, tag);
  const { frame } = messages;
  const output = outputState(frame);
  let turn: number | undefined;
  /** Whether the client has custom events of the turn. */
  let hasCustom = false;
  const subagents = new Map<string, AgentEncoder>();
  let stepName: string | undefined;

  function finished(call: string, status: CallResult["status"], content: unknown): string {
    const toolCallId = prefix + call;
    if (history.hasResult(toolCallId)) return "";
    const messageId = `${runId()}.${call}`;
    const result = { role: "tool", toolCallId, content };
    messages.add({ id: messageId, ...result, ...tag });
    return frame("TOOL_CALL_RESULT", { messageId, ...result, metadata: status === "ok" ? undefined : { status } });
  }

  /** Ends a subagent that is done, paused or failed. */
  function finishSubagent(call: string, status: string): string {
    const subagent = subagents.get(call);
    if (!subagent) return "";
    subagents.delete(call);
    const type = { done: "success", paused: "suspended" }[status];
    return subagent.close() +
      (type
        ? subagent.frame("SUBAGENT_FINISHED", { outcome: { type } })
        : subagent.frame("SUBAGENT_ERROR", { message: status }));
  }

  function close(): string {
    const finished = [...subagents.keys()].map((call) => finishSubagent(call, "stopped"));
    const closed = finished.join("") + messages.close() +
      (stepName === undefined ? "" : frame("STEP_FINISHED", { stepName }));
    stepName = undefined;
    return closed;
  }

  const custom = (name: string, value: unknown) => frame("CUSTOM", { name, value });

  function beginTurn(next: number): string {
    const discarded = next === turn ? discard() : ""; // asked again, because the process that asked it first died
    turn = next;
    hasCustom = false;
    messages.begin(`${runId()}.${turn}`);
    return discarded;
  }

  /** Removes what the client has of the turn, which begins again. */
  function discard(): string {
    const removed = messages.discard() + output.discard();
    const isTold = hasCustom;
    hasCustom = false;
    return removed + (isTold ? custom("discarded", { messageId: `${runId()}.${turn}` }) : "");
  }

  function addPart({ content: { type, ...value } }: EventOf<"part.added">): string {
    hasCustom = true;
    return messages.close() + custom(type, value);
  }

  const encoder = tableEncoder({
    "text.delta": ({ text }) => messages.delta("TEXT", text),
    "reasoning.delta": ({ text }) => messages.delta("REASONING", text),

    "turn.started"({ turn }) {
      stepName = `turn ${turn}`;
      return frame("STEP_STARTED", { stepName });
    },
    "model.started": ({ turn }) => beginTurn(turn),
    "model.reset": discard,
    "model.finished": ({ text }) =>
      output.flush() + (text === undefined ? messages.close() : messages.replaceText(text)),
    "part.added": addPart,
    "provider_tool.started": ({ content: { callId: id, name, input } }) =>
      messages.close() + messages.endCall(prefix + id, { id, name, input }),
    "provider_tool.finished": ({ content: { callId, status, output } }) =>
      messages.close() + finished(callId, status, JSON.stringify(output)),
    "output.delta": ({ changes }) => output.add(changes),
    "turn.finished": close,

    "call.delta": ({ call, name, text }) => messages.callDelta(prefix + call, name, text),
    "call.ready": ({ call }) => messages.endCall(prefix + call.id, call),
    "tool.progress": ({ type, call, data }) => custom(type, { toolCallId: prefix + call, data }),
    "tool.finished": ({ call, result }) => finished(call, result.status, contentOf(result)),

    "notice": ({ type, text }) => custom(type, text),
    "data": ({ name, data }) => name === "state" ? frame("STATE_SNAPSHOT", { snapshot: data }) : custom(name, data),

    "subagent.started"({ call, agent: name, run: subagentRunId }) {
      const parentToolCallId = prefix + call;
      const subagent = agentEncoder(() => subagentRunId, history, `${parentToolCallId}/`, { subagentRunId });
      subagents.set(call, subagent);
      const parentSubagentRunId = tag.subagentRunId;
      return subagent.frame("SUBAGENT_STARTED", { name, parentToolCallId, parentSubagentRunId });
    },
    "subagent.event": ({ call, event }) => subagents.get(call)?.encode(event) ?? "",
    "subagent.finished": ({ call, status }) => finishSubagent(call, status),
  });
  function wholeText(id: string, text: string): string {
    messages.begin(id);
    return messages.replaceText(text);
  }

  return { encode: (event) => encoder(event, 0), frame, wholeText, close };
}

/** Returns the content of a result: text, unless it contains a file. */
function contentOf({ parts }: CallResult): unknown {
  return parts.every(({ type }) => type === "text") ? textOf({ parts }) : parts.map(contentPart);
}

function contentPart(part: ContentPart): object {
  if (part.type === "text") return part;
  const { mediaType: mimeType, data, url } = part;
  const type = /^(image|audio|video)/.exec(mimeType)?.[0] ?? "document";
  return { type, source: { type: data === undefined ? "url" : "data", value: data ?? url ?? "", mimeType } };
}
