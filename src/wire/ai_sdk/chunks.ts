/**
 * Events of a run as chunks of the UI message stream, and message parts as a list of messages has them too.
 *
 * @module
 */
import { InnerCallGate, lastTexts } from "../../core/features/inner_calls.ts";
import { canonicalJson } from "../../core/lib/json.ts";
import type { Event } from "../../protocol/event.ts";
import { type CallResult, textOf, type UserMessage } from "../../protocol/message.ts";
import type { Call, ContentPart, ProviderCallPart, ProviderResultPart } from "../../protocol/part.ts";
import type { Question } from "../../protocol/question.ts";
import { isForClient } from "../client_tool.ts";
import { aiSdkReasons, finishOfRun } from "../finish_reason.ts";
import { doneFrame, frameOf, outputOf } from "../frames.ts";
import { type EventEncoder, type EventOf, type Pause, questionId, tableEncoder } from "../wire.ts";

// Message parts that are the same in a stream and in the list of messages.

/**
 * Whether a question is about a call inside the subagent of the call `id`. That call gets the question as its output, because the client resumes only when every
 * other call has an output.
 */
export function isInside({ callId, tool, path = [] }: Question, id: string): boolean {
  return tool !== undefined && path.length > 0 && callId?.startsWith(`${id}/`) === true;
}

/** Encodes a part that is complete at once, as a chunk. Files and sources are parts of a message in the same form. */
export function partChunk(part: EventOf<"part.added">["content"], sourceId: string): object {
  if (part.type === "media") return contentPart(part);
  if (part.type !== "source") {
    const { type, ...data } = part;
    return { type: `data-${type}`, data };
  }
  const { url, title, text } = part;
  return url === undefined
    ? { type: "source-document", sourceId, mediaType: "text/plain", title: title ?? text ?? "" }
    : { type: "source-url", sourceId, url, title };
}

/** Returns the state of a call that the provider runs, and the fields that its chunk and its part of a message share. */
export function providerFields(part: ProviderCallPart | ProviderResultPart): { readonly [field: string]: unknown } {
  const call = { toolCallId: part.callId, providerExecuted: true };
  if (part.type === "provider_call") {
    return { state: "input-available", ...call, toolName: part.name, input: part.input };
  }
  const { output } = part;
  if (part.status === "ok") return { state: "output-available", ...call, output };
  return { state: "output-error", ...call, errorText: JSON.stringify(output) };
}

/** Encodes content of a user message. */
export function contentPart(part: ContentPart): object {
  if (part.type === "text") return part;
  const { mediaType, data, url } = part;
  return { type: "file", mediaType, url: url ?? `data:${mediaType};base64,${data}` };
}

/** Encodes a message that the user sent during the run, as a part of the assistant's message. */
export function steeringPart({ parts }: UserMessage, id: string): object {
  return { type: "steering-message", id, parts: parts.map(contentPart) };
}

// Calls of tools as chunks of the UI message stream.

/** Encodes the calls of one response. */
interface CallEncoder {
  /** Begins the response. `resumed`: the client may have calls that this encoder has not encoded. */
  open(resumed: boolean): void;
  /** Begins a turn, or begins it again: the client has been told to discard its calls. */
  start(turn: number | undefined): void;
  /** Encodes an event of a call, or of a call inside a subagent. */
  encode(event: Event): string;
  /** Encodes the question whether a call may run. */
  ask(question: Question, pause: Pause): string;
}

/** Creates the encoder of one response. */
function callEncoder(): CallEncoder {
  let turn: number | undefined;
  /** The calls whose input is streamed, and the complete calls of the turn. */
  const started = new Set<string>();
  let complete: Call[] = [];
  /** The approval ids of the calls that the client was asked about, and the calls that a person denied. */
  const approvals = new Map<string, string>();
  const denied = new Set<string>();
  /** The calls of subagents, outer ones first. */
  const subagents = new Set<string>();
  const gate = new InnerCallGate();

  /** Encodes an event. `prefix` begins the ids of its calls: the path of the subagent calls that contain them, such as `call_1/`. */
  const encode = tableEncoder<string>({
    "call.delta": (event, prefix) => inputDelta(prefix + event.call, event.name, event.text),
    "call.ready"({ call }, prefix) {
      if (prefix === "") complete.push(call);
      return inputAvailable({ ...call, id: prefix + call.id });
    },
    "tool.started"(event) {
      const isKnown = event.turn !== turn || complete.some(({ id }) => id === event.call);
      return isKnown ? "" : inputAvailable({ id: event.call, name: event.name, input: {} }); // a hook made the call
    },
    "tool.progress": (event, prefix) => outputAvailable(prefix + event.call, event.data, true),
    "approval.decided": (event, prefix) => decided(prefix + event.call, event),
    "tool.finished": (event, prefix) => finished(prefix + event.call, event.result),
    "provider_tool.started": ({ content }, prefix) => providerFrame(content, prefix),
    "provider_tool.finished": ({ content }, prefix) => providerFrame(content, prefix),
    "run.paused"({ questions }, prefix) { // of a subagent. The calls that wait get the question as their output, as in `isInside()`
      const calls = gate.release(prefix).map(({ call }) => ({ ...call, id: prefix + call.id }));
      const reason = lastTexts(questions).join("\n");
      return calls.map((call) => inputAvailable(call) + outputAvailable(call.id, reason)).join("");
    },
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
    const path = `${toolCallId}/`;
    const streamed = /^(.+\.delta|provider_tool\..+)$/.test(event.type)
      ? frameOf({ type: "data-subagent", data: { call: toolCallId, agent, event }, transient: true })
      : "";
    return streamed + gate.pass(event, path).map((each) => encode(each, path)).join("");
  }

  /** Whether this response has the call with this input. */
  function isShown(callId: string, input: unknown): boolean {
    return complete.some((call) => call.id === callId && canonicalJson(call.input) === canonicalJson(input));
  }

  return {
    open(resumed) {
      gate.resumed = resumed;
    },
    start(next) {
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
      const [outermost = ""] = callId.split("/"); // also if a filter has dropped the events of its subagent
      return [
        ...[...subagents.add(outermost)].filter((call) => isInside(question, call))
          .map((call) => outputAvailable(call, reason)),
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

// Events of a whole run, with its text, as chunks.

type TextKind = "text" | "reasoning";

/** Creates the encoder of one response. */
export function chunkEncoder(): EventEncoder {
  /** The run; empty before its first event. */
  let run = "";
  let hasText = false;
  /** The turn of the current step. */
  let step: number | undefined;
  /** The part that is streamed. */
  let openText: { readonly kind: TextKind; readonly id: string } | undefined;
  /** The chunks of the current step that are complete at once: files, sources and calls. */
  let added = "";
  /** The reasoning of the current step, by the ids of its parts. */
  const thoughts = new Map<string, string>();
  const calls = callEncoder();

  function delta(kind: TextKind, id: string, text: string): string {
    if (kind === "reasoning") thoughts.set(id, (thoughts.get(id) ?? "") + text);
    const chunk = `data: {"type":"${kind}-delta","id":"${id}","delta":${JSON.stringify(text)}}\n\n`;
    if (openText?.id === id) return chunk;
    const closed = closePart();
    openText = { kind, id };
    hasText ||= kind === "text";
    return `${closed}${frameOf({ type: `${kind}-start`, id })}${chunk}`;
  }

  function closePart(): string {
    if (!openText) return "";
    const { kind, id } = openText;
    openText = undefined;
    return frameOf({ type: `${kind}-end`, id });
  }

  /** Encodes a part that is complete at once. */
  function add(chunk: string): string {
    added += chunk;
    return closePart() + chunk;
  }

  /** Encodes a complete text part; nothing for an empty text. */
  function wholeText(id: string, text: string): string {
    return text === "" ? "" : delta("text", id, text) + closePart();
  }

  /** Begins a step, or tells the client to discard the current one, which begins again. */
  function beginStep(type: "start-step" | "reset-step"): string {
    openText = undefined;
    added = "";
    thoughts.clear();
    calls.start(step);
    return frameOf({ type });
  }

  /** Encodes a question. The run's own question is shown as text. The client knows the calls that it runs itself. */
  function ask(question: Question, pause: Pause, index: number): string {
    const { tool, questions } = question;
    if (tool === undefined) return wholeText(`question.${pause.pausedAt}.${index}`, questions.join("\n"));
    return isForClient(question) ? "" : calls.ask(question, pause);
  }

  return tableEncoder({
    "text.delta": ({ turn, part, text }) => delta("text", `${turn}.${part}`, text),
    "reasoning.delta": ({ turn, part, text }) => delta("reasoning", `${turn}.${part}`, text),

    "run.started"({ run: started, session, resumed }) {
      if (run !== "") return "";
      run = started;
      calls.open(resumed);
      return frameOf({ type: "start", messageId: resumed ? undefined : run, messageMetadata: { run, session } });
    },
    "model.started"({ turn }) {
      const isAgain = turn === step; // because the process that asked the model first died
      step = turn;
      return beginStep(isAgain ? "reset-step" : "start-step");
    },
    "model.reset": () => beginStep("reset-step"),
    "model.finished"({ turn, text }) {
      if (text === undefined) return closePart();
      openText = undefined; // the client discards the step, and receives it again as a whole
      const thought = [...thoughts].map(([id, text]) => delta("reasoning", id, text) + closePart());
      return frameOf({ type: "reset-step" }) + thought.join("") + wholeText(`${turn}.final`, text) + added;
    },
    "turn.finished": () => frameOf({ type: "finish-step" }),

    "call.ready": (event) => add(calls.encode(event)),
    "steering.injected": ({ messages }, id) =>
      messages.map((message, index) => frameOf(steeringPart(message, `${id}.${index}`))).join(""),
    "part.added": ({ turn, part, content }) => add(frameOf(partChunk(content, `${turn}.${part}`))),
    "provider_tool.started": (event) => add(calls.encode(event)),
    "provider_tool.finished": (event) => add(calls.encode(event)),
    "output.delta": ({ turn, changes }) => frameOf({ type: "data-output", data: { turn, changes }, transient: true }),
    "notice": ({ text }) => frameOf({ type: "data-notice", data: { text } }),
    "data": (event) => frameOf({ type: `data-${event.name}`, ...dataId(event), data: event.data }),

    "run.paused"({ questions, usage, resumeToken }, id) {
      const asks = resumeToken === undefined ? undefined : questions.some(({ tool }) => tool === undefined);
      const pause = { run, pausedAt: id };
      const frames = [closePart(), ...questions.map((question, index) => ask(question, pause, index))];
      return frames.join("") + end("tool-calls", { status: "paused", pausedAt: id, usage, resumeToken, asks });
    },
    "run.finished"(event) {
      const { status, text, reason, output, usage } = event;
      const rest = hasText ? "" : wholeText("final", text);
      const finish = finishOfRun(event, event.finish ?? (status === "done" ? "stop" : "other"));
      return rest + closePart() + end(aiSdkReasons[finish] ?? finish, { status, reason, output, usage });
    },
    "run.failed"({ message, code, retryAfter, error: id }) {
      const messageMetadata = { status: "failed", code, retryAfter, id }; // an error chunk has no other fields
      return closePart() + frameOf({ type: "message-metadata", messageMetadata }) +
        frameOf({ type: "error", errorText: message }) + doneFrame;
    },
    "run.aborted": ({ reason, usage }) =>
      closePart() + frameOf({ type: "abort", reason }) + end("interrupted", { status: "aborted", reason, usage }),
  }, (event) => calls.encode(event));
}

function end(finishReason: string, messageMetadata: object): string {
  return frameOf({ type: "finish", finishReason, messageMetadata }) + doneFrame;
}

/** Returns the id of a data part. A part with the id of an earlier one replaces it, and so does a new state. */
function dataId({ name, data }: EventOf<"data">): { readonly id?: string } {
  const { id } = name === "state" ? { id: name } : Object(data);
  return typeof id === "string" ? { id } : {};
}
