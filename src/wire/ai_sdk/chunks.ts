/**
 * Events of a run as chunks of the UI message stream.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/event.ts";
import type { Question } from "../../protocol/question.ts";
import { isForClient } from "../client_tool.ts";
import { type EventOf, tableEncoder } from "../encoder.ts";
import { finishOfRun } from "../finish_reason.ts";
import { doneFrame, frameOf } from "../frames.ts";
import type { EventEncoder, Pause } from "../wire.ts";
import { callEncoder } from "./call_chunks.ts";
import { partChunk, steeringPart } from "./parts.ts";

type TextKind = "text" | "reasoning";

/** The finish reasons that have another name in the stream. */
const finishReasons: { readonly [key in FinishReason]?: string } = {
  calls: "tool-calls",
  filter: "content-filter",
  refusal: "content-filter",
  empty: "other",
};

/** Creates the encoder of one response. */
export function chunkEncoder(): EventEncoder {
  /** The run; empty before its first event. */
  let run = "";
  let hasText = false;
  /** The turn of the current step. */
  let step: number | undefined;
  /** The part that is streamed. */
  let open: { readonly kind: TextKind; readonly id: string } | undefined;
  /** The chunks of the current step that are complete at once: files, sources and calls. */
  let added = "";
  /** The reasoning of the current step, by the ids of its parts. */
  const thoughts = new Map<string, string>();
  const calls = callEncoder();

  function delta(kind: TextKind, id: string, text: string): string {
    if (kind === "reasoning") thoughts.set(id, (thoughts.get(id) ?? "") + text);
    const chunk = `data: {"type":"${kind}-delta","id":"${id}","delta":${JSON.stringify(text)}}\n\n`;
    if (open?.id === id) return chunk;
    const closed = closePart();
    open = { kind, id };
    hasText ||= kind === "text";
    return `${closed}${frameOf({ type: `${kind}-start`, id })}${chunk}`;
  }

  function closePart(): string {
    if (!open) return "";
    const { kind, id } = open;
    open = undefined;
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
    open = undefined;
    added = "";
    thoughts.clear();
    calls.begin(step);
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
      open = undefined; // the client discards the step, and receives it again as a whole
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
      return rest + closePart() + end(finishReasons[finish] ?? finish, { status, reason, output, usage });
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
