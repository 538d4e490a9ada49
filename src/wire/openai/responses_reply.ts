/**
 * Runs as responses of the Responses API: items that grow.
 *
 * @module
 */
import type { Event } from "../../protocol/event.ts";
import type { Question } from "../../protocol/question.ts";
import type { Usage } from "../../protocol/message.ts";
import { isForClient } from "../client_tool.ts";
import { frameOf } from "../frames.ts";
import type { Whole } from "../wire.ts";
import { outerId } from "./call_id.ts";
import { errorOf, type Last } from "./ended.ts";

/** A text that grows: the model's own, or its thought. */
interface Growing {
  readonly kind: "output_text" | "reasoning_text";
  /** Where it is. */
  readonly at: { readonly item_id: string; readonly output_index: number; readonly content_index: 0 };
  readonly texts: string[];
}

/** Begins a response of the agent `model`; gives the frames of each event. `over` hears what they come to. */
export function responding(
  model: string,
  over: (whole: Whole) => void = () => {},
): (event: Event, id: number) => string {
  let run = "";
  let session = "";
  let head = {};
  let sequence = 0;
  let items = 0;
  /** What grows, and where that is as JSON. */
  let growing: Growing | undefined;
  let where = "";
  /** What is complete; what comes after the mark belongs to the turn that goes on, and may be taken back. */
  const output: object[] = [];
  let mark = 0;
  let turn: number | undefined;

  function begin(started: Extract<Event, { readonly type: "run.started" }>): string {
    ({ run, session } = started);
    head = {
      id: `resp_${outerId({ session, call: run })}`,
      object: "response",
      created_at: Math.floor(Date.now() / 1_000),
      model,
    };
    const response = snapshot("in_progress");
    return frame("response.created", { response });
  }

  function frame(type: string, fields: object): string {
    return frameOf({ type, sequence_number: sequence++, ...fields });
  }

  function snapshot(status: string, more: object = {}): object {
    return { ...head, status, output, ...more };
  }

  /** An item that is complete at once. */
  function add(given: object): string {
    const fields = { output_index: items++, item: { ...given, status: "completed" } };
    output.push(fields.item);
    return frame("response.output_item.added", fields) + frame("response.output_item.done", fields);
  }

  function grow(kind: Growing["kind"], text: string): string {
    const before = growing?.kind === kind ? "" : end() + open(kind);
    growing?.texts.push(text);
    const delta = JSON.stringify(text);
    return `${before}data: {"type":"response.${kind}.delta","sequence_number":${sequence++},${where},"delta":${delta}}\n\n`;
  }

  function open(kind: Growing["kind"]): string {
    const output_index = items++;
    const at = { item_id: `${run}_${output_index}`, output_index, content_index: 0 } as const;
    growing = { kind, at, texts: [] };
    where = JSON.stringify(at).slice(1, -1);
    return frame("response.output_item.added", { output_index, item: itemOf(growing, "in_progress", []) }) +
      frame("response.content_part.added", { ...at, part: partOf(kind, "") });
  }

  /** Ends what grows; where it is taken back, it is not in the response. */
  function end(status = "completed"): string {
    if (!growing) return "";
    const { kind, at, texts } = growing;
    const text = texts.join("");
    const part = partOf(kind, text);
    const item = itemOf(growing, status, [part]);
    growing = undefined;
    output.push(item);
    return frame(`response.${kind}.done`, { ...at, text }) +
      frame("response.content_part.done", { ...at, part }) +
      frame("response.output_item.done", { output_index: at.output_index, item });
  }

  /** A text that is complete. */
  function whole(text: string): string {
    return text === "" ? "" : grow("output_text", text) + end();
  }

  /** Takes back what this turn has said. */
  function reset(): string {
    const ended = end("incomplete");
    output.splice(mark);
    return ended;
  }

  function ask(question: Question, pause: number): string {
    const { callId = "", tool: name, input, questions } = question;
    if (name === undefined) return whole(questions.join("\n"));
    const call_id = outerId({ session, call: callId });
    const call = { name, arguments: JSON.stringify(input) };
    return add(
      isForClient(question)
        ? { id: `fc_${call_id}`, type: "function_call", call_id, ...call }
        : { id: `${call_id}@${pause}`, type: "mcp_approval_request", server_label: model, ...call },
    );
  }

  function close(last: Last, id: number): string {
    let text = end();
    if (last.type === "run.paused") text += last.questions.map((question) => ask(question, id)).join("");
    if (last.type === "run.finished" && output.length === 0) text += whole(last.text);
    const error = errorOf(last);
    const short = last.type === "run.finished" && last.status === "limit";
    const status = error ? "failed" : short ? "incomplete" : "completed";
    const incomplete_details = short ? { reason: "max_output_tokens" } : undefined;
    const response = snapshot(status, { error, incomplete_details, usage: usageOf(last.usage) });
    over(error ? { status: 500, body: { error } } : { status: 200, body: response });
    return text + frame(`response.${status}`, { response });
  }

  return (event, id) => {
    switch (event.type) {
      case "text.delta":
        return grow("output_text", event.text);
      case "reasoning.delta":
        return grow("reasoning_text", event.text);
      case "run.started":
        return sequence > 0 ? "" : begin(event);
      case "model.started": {
        const before = event.turn === turn ? reset() : ""; // it is asked again, since its process died
        turn = event.turn;
        mark = output.length;
        return before;
      }
      case "model.reset":
        return reset();
      case "model.finished":
        return event.text === undefined ? end() : reset() + whole(event.text);
      case "run.paused":
      case "run.finished":
      case "run.failed":
      case "run.aborted":
        return close(event, id);
      default:
        return "";
    }
  };
}

function itemOf({ kind, at: { item_id: id } }: Growing, status: string, content: readonly object[]): object {
  const what = kind === "output_text" ? { type: "message", role: "assistant" } : { type: "reasoning", summary: [] };
  return { id, ...what, status, content };
}

function partOf(type: Growing["kind"], text: string): object {
  return { type, text, annotations: type === "output_text" ? [] : undefined };
}

function usageOf({ input, output, cached = 0 }: Usage) {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}
