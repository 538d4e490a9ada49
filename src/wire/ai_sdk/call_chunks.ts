/**
 * Calls of tools as chunks of the UI message stream.
 *
 * @module
 */
import { canonicalJson } from "../../core/lib/json.ts";
import type { Event } from "../../protocol/event.ts";
import { type CallResult, textOf } from "../../protocol/message.ts";
import type { Call, ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import type { Question } from "../../protocol/question.ts";
import { type EventOf, tableEncoder } from "../encoder.ts";
import { frameOf, outputOf } from "../frames.ts";
import { questionId } from "../answer.ts";
import type { Pause } from "../wire.ts";
import { isInside, providerFields } from "./parts.ts";

/** Encodes the calls of one response. */
export interface CallEncoder {
  /** Begins a turn, or begins it again: the client has been told to discard its calls. */
  begin(turn: number | undefined): void;
  /** Encodes an event of a call, or of a call inside a subagent. */
  encode(event: Event): string;
  /** Encodes the question whether a call may run. */
  ask(question: Question, pause: Pause): string;
}

/** Creates the encoder of one response. */
export function callEncoder(): CallEncoder {
  let turn: number | undefined;
  /** The calls whose input is streamed, and the complete calls of the turn. */
  const started = new Set<string>();
  let complete: Call[] = [];
  /** The approval ids of the calls that the client was asked about, and the calls that a person denied. */
  const approvals = new Map<string, string>();
  const denied = new Set<string>();
  /** The calls of subagents, outer ones first. */
  const subagents = new Set<string>();

  /** Encodes an event. `prefix` begins the ids of its calls: the path of the subagent calls that contain them, such as `call_1/`. */
  const encode = tableEncoder<string>({
    "call.delta": (event, prefix) => inputDelta(prefix + event.call, event.name, event.text),
    "call.ready"({ call }, prefix) {
      if (prefix === "") complete.push(call);
      return inputAvailable({ ...call, id: prefix + call.id });
    },
    "tool.started"(event, prefix) {
      const isKnown = prefix !== "" || event.turn !== turn || complete.some(({ id }) => id === event.call);
      return isKnown ? "" : inputAvailable({ id: event.call, name: event.name, input: {} }); // a hook made the call
    },
    "tool.progress": (event, prefix) => outputAvailable(prefix + event.call, event.data, true),
    "approval.decided": (event, prefix) => decided(prefix + event.call, event),
    "tool.finished": (event, prefix) => finished(prefix + event.call, event.result),
    "provider_tool.started": ({ content }, prefix) => providerFrame(content, prefix),
    "provider_tool.finished": ({ content }, prefix) => providerFrame(content, prefix),
    "subagent.event": (event, prefix) => subagentEvent(prefix + event.call, event),
  });

  function inputDelta(toolCallId: string, toolName: string, inputTextDelta: string): string {
    const start = started.has(toolCallId) ? "" : frameOf({ type: "tool-input-start", toolCallId, toolName });
    started.add(toolCallId);
    return `${start}${frameOf({ type: "tool-input-delta", toolCallId, inputTextDelta })}`;
  }

  function decided(toolCallId: string, { decision, by, reason }: EventOf<"approval.decided">): string {
    if (by !== "person") return "";
    if (decision === "deny") denied.add(toolCallId);
    const approvalId = approvals.get(toolCallId);
    if (approvalId === undefined) return "";
    return frameOf({ type: "tool-approval-response", approvalId, approved: decision === "allow", reason });
  }

  function finished(toolCallId: string, result: CallResult): string {
    if (result.status === "ok") return outputAvailable(toolCallId, outputOf(result));
    if (result.status === "denied" && denied.has(toolCallId)) {
      return frameOf({ type: "tool-output-denied", toolCallId });
    }
    return frameOf({ type: "tool-output-error", toolCallId, errorText: textOf(result) });
  }

  function subagentEvent(toolCallId: string, { event, agent }: EventOf<"subagent.event">): string {
    subagents.add(toolCallId);
    const isText = event.type === "text.delta" || event.type === "reasoning.delta";
    return isText
      ? frameOf({ type: "data-subagent", data: { call: toolCallId, agent, event }, transient: true })
      : encode(event, `${toolCallId}/`);
  }

  /** Whether this response has the call with this input. */
  function isShown(callId: string, input: unknown): boolean {
    return complete.some((call) => call.id === callId && canonicalJson(call.input) === canonicalJson(input));
  }

  return {
    begin(next) {
      turn = next;
      started.clear();
      complete = [];
    },
    encode: (event) => encode(event, ""),
    ask(question, pause) {
      const { callId = "", tool = "", input, questions } = question;
      const reason = questions.join("\n");
      const id = questionId(callId, pause);
      approvals.set(callId, id);
      return [
        ...[...subagents].filter((call) => isInside(question, call)).map((call) => outputAvailable(call, reason)),
        isShown(callId, input) ? "" : inputAvailable({ id: callId, name: tool, input }),
        frameOf({ type: "tool-approval-request", approvalId: id, toolCallId: callId, reason }),
      ].join("");
    },
  };
}

/** Encodes a call that the provider runs, or its result. */
function providerFrame(part: ProviderCallPart | ProviderResultPart, prefix: string): string {
  const { state, ...fields } = providerFields(part);
  return frameOf({ type: `tool-${state}`, ...fields, toolCallId: prefix + part.callId });
}

function inputAvailable({ id: toolCallId, name: toolName, input }: Call): string {
  return frameOf({ type: "tool-input-available", toolCallId, toolName, input });
}

function outputAvailable(toolCallId: string, output: unknown, preliminary?: true): string {
  return frameOf({ type: "tool-output-available", toolCallId, output, preliminary });
}
