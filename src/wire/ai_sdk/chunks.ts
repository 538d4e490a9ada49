/**
 * Events of a run as chunks of the UI message stream.
 *
 * @module
 */
import { canonicalJson } from "../../core/canonical.ts";
import type { Event, FinishReason } from "../../protocol/event.ts";
import type { Question } from "../../protocol/question.ts";
import { type Call, type CallResult, textOf } from "../../protocol/message.ts";
import { isForClient } from "../client_tool.ts";
import { done, frameOf, outputOf } from "../frames.ts";
import { agentsOf, approvalId, steering } from "./parts.ts";

type Growing = Extract<Event, { readonly part: number }>;

const finishes: { readonly [key in FinishReason]: string } = {
  stop: "stop",
  calls: "tool-calls",
  length: "length",
  filter: "content-filter",
  other: "other",
};

/** Begins a response; gives the chunks of each event, as frames. */
export function chunking(): (event: Event, id: number) => string {
  let begun = false;
  /** Whether the client has heard any text. */
  let said = false;
  /** The turn of the step that it is in. */
  let step: number | undefined;
  let growing: { readonly kind: "text" | "reasoning"; readonly id: string } | undefined;
  let finish: FinishReason = "other";
  /** The calls whose input has begun, and those of this step that are complete. */
  const writing = new Set<string>();
  let calls: Call[] = [];
  /** By what the client was asked about calls; and those that a person denied. */
  const asked = new Map<string, string>();
  const refused = new Set<string>();

  function grow(kind: "text" | "reasoning", { turn, part, text }: Growing): string {
    const id = `${turn}.${part}`;
    const more = `data: {"type":"${kind}-delta","id":"${id}","delta":${JSON.stringify(text)}}\n\n`;
    if (growing?.id === id) return more;
    const before = end();
    growing = { kind, id };
    said ||= kind === "text";
    return `${before}${frameOf({ type: `${kind}-start`, id })}${more}`;
  }

  /** Ends the part that grows. */
  function end(): string {
    if (!growing) return "";
    const { kind, id } = growing;
    growing = undefined;
    return frameOf({ type: `${kind}-end`, id });
  }

  function whole(id: string, text: string): string {
    said = true;
    return [{ type: "text-start", id }, { type: "text-delta", id, delta: text }, { type: "text-end", id }]
      .map(frameOf).join("");
  }

  /** Takes back what the client has heard in this step. */
  function reset(): string {
    growing = undefined;
    writing.clear();
    calls = [];
    return frameOf({ type: "reset-step" });
  }

  /** What is told of a call alike, whoever makes it: one in an agent that is a tool has that of the tool before its id. */
  function call(event: Event, within = ""): string {
    switch (event.type) {
      case "call.delta": {
        const toolCallId = within + event.call;
        const start = writing.has(toolCallId)
          ? ""
          : frameOf({ type: "tool-input-start", toolCallId, toolName: event.name });
        writing.add(toolCallId);
        return `${start}${frameOf({ type: "tool-input-delta", toolCallId, inputTextDelta: event.text })}`;
      }
      case "call.ready":
        return ready({ ...event.call, id: within + event.call.id });
      case "tool.started": {
        const isKnown = within !== "" || event.turn !== step || calls.some(({ id }) => id === event.call);
        return isKnown ? "" : ready({ id: event.call, name: event.name, input: {} }); // a hook made it
      }
      case "tool.progress":
        return output(within + event.call, event.data, true);
      case "approval.decided": {
        const { decision, by, reason } = event;
        const toolCallId = within + event.call;
        if (by !== "person") return "";
        if (decision === "deny") refused.add(toolCallId);
        const id = asked.get(toolCallId);
        return id === undefined
          ? ""
          : frameOf({ type: "tool-approval-response", approvalId: id, approved: decision === "allow", reason });
      }
      case "tool.finished":
        return finished(within + event.call, event.result);
      case "subagent.event": {
        const { event: inner, agent } = event;
        const toolCallId = within + event.call;
        const grows = inner.type === "text.delta" || inner.type === "reasoning.delta";
        return grows
          ? frameOf({ type: "data-subagent", data: { call: toolCallId, agent, event: inner }, transient: true })
          : call(inner, `${toolCallId}/`);
      }
      default:
        return "";
    }
  }

  function ready({ id: toolCallId, name: toolName, input }: Call): string {
    return frameOf({ type: "tool-input-available", toolCallId, toolName, input });
  }

  function finished(toolCallId: string, result: CallResult): string {
    if (result.status === "ok") return output(toolCallId, outputOf(result));
    if (result.status === "denied" && refused.has(toolCallId)) {
      return frameOf({ type: "tool-output-denied", toolCallId });
    }
    return frameOf({ type: "tool-output-error", toolCallId, errorText: textOf(result) });
  }

  /** Asks the client. A question that is about no call is said; one about a call that it runs is known to it. */
  function ask(question: Question, pause: number): string {
    const { callId = "", tool, input, questions } = question;
    if (tool === undefined) return whole(`question.${pause}.${callId}`, questions.join("\n"));
    if (isForClient(question)) return "";
    const id = approvalId(callId, pause);
    asked.set(callId, id);
    return [
      ...agentsOf(callId).map((agent) => output(agent, questions.join("\n"))),
      ...(knows(callId, input) ? [] : [ready({ id: callId, name: tool, input })]),
      frameOf({ type: "tool-approval-request", approvalId: id, toolCallId: callId, reason: questions.join("\n") }),
    ].join("");
  }

  /** Whether the client has heard of a call with this input, in this response. */
  function knows(callId: string, input: unknown): boolean {
    return calls.some((call) => call.id === callId && canonicalJson(call.input) === canonicalJson(input));
  }

  return (event, id) => {
    switch (event.type) {
      case "text.delta":
        return grow("text", event);
      case "reasoning.delta":
        return grow("reasoning", event);
      case "run.started": {
        if (begun) return "";
        begun = true;
        const { run, session, resumed } = event;
        return frameOf({ type: "start", ...(!resumed && { messageId: run }), messageMetadata: { run, session } });
      }
      case "model.started": {
        if (event.turn === step) return reset(); // it is asked again, since its process died
        step = event.turn;
        calls = [];
        return frameOf({ type: "start-step" });
      }
      case "model.reset":
        return reset();
      case "call.ready":
        calls.push(event.call);
        return end() + call(event);
      case "model.finished": {
        finish = event.finish;
        if (event.text === undefined) return end();
        const kept = calls;
        const text = event.text === "" ? "" : whole(`${event.turn}.final`, event.text);
        return reset() + text + kept.map(ready).join("");
      }
      case "steering.injected":
        return event.messages.map((message, index) => frameOf(steering(message, `${id}.${index}`))).join("");
      case "turn.finished":
        return frameOf({ type: "finish-step" });
      case "notice":
        return frameOf({ type: "data-notice", data: { text: event.text } });
      case "data":
        return frameOf({ type: `data-${event.name}`, ...idOf(event), data: event.data });
      case "run.paused": {
        const questions = event.questions.map((question) => ask(question, id)).join("");
        const { usage, resumeToken } = event;
        const asks = resumeToken === undefined ? undefined : event.questions.some(({ tool }) => tool === undefined);
        return end() + questions + close("tool-calls", { status: "paused", usage, resumeToken, asks });
      }
      case "run.finished": {
        const { status, text, reason, output, usage } = event;
        const rest = said || text === "" ? "" : whole("final", text);
        return end() + rest +
          close(status === "limit" ? "length" : finishes[finish], { status, reason, output, usage });
      }
      case "run.failed":
        return end() + frameOf({ type: "error", errorText: event.message }) + done;
      case "run.aborted": {
        const { reason, usage } = event;
        return end() + frameOf({ type: "abort", reason }) + close("interrupted", { status: "aborted", reason, usage });
      }
      default:
        return call(event);
    }
  };
}

function output(toolCallId: string, output: unknown, preliminary?: true): string {
  return frameOf({ type: "tool-output-available", toolCallId, output, preliminary });
}

function close(finishReason: string, messageMetadata: object): string {
  return frameOf({ type: "finish", finishReason, messageMetadata }) + done;
}

/** Data that says its own id replaces what came before with that, and a state the state before it. */
function idOf({ name, data }: Extract<Event, { readonly type: "data" }>): { readonly id?: string } {
  if (name === "state") return { id: name };
  return typeof data === "object" && data !== null && "id" in data && typeof data.id === "string"
    ? { id: data.id }
    : {};
}
