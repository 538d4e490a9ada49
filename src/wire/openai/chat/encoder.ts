/**
 * Events of a run as chunks of a chat completion. The format cannot take back streamed text, so a notice tells that it was discarded.
 *
 * @module
 */
import { noUsage, usageSince } from "../../../protocol/message.ts";
import type { FinishReason } from "../../../protocol/event.ts";
import { type EventOf, tableEncoder } from "../../encoder.ts";
import { doneFrame, frameOf } from "../../frames.ts";
import type { EventEncoder } from "../../wire.ts";
import { turnCollector } from "./collector.ts";
import { completionEnd, completionHead, completionUsage, partFields } from "./completion.ts";
import { type EndEvent, errorOf, refusalIn } from "../run_error.ts";

/** The notice behind a text that was sent and is not part of the answer. */
const notice = "\n\n[The answer above was discarded.]";

/** Options of one stream. */
export interface CompletionOptions {
  /** Whether the token usage is sent at its end. */
  readonly includeUsage: boolean;
  /** Whether the text is one JSON text, to which nothing is added. */
  readonly isJson: boolean;
}

/** Creates the encoder of one stream. */
export function completionEncoder(model: string, { includeUsage, isJson }: CompletionOptions): EventEncoder {
  let run = "";
  let session = "";
  let head: object | undefined;
  /** The frame of a text delta, up to the delta. */
  let beforeDelta = "";
  let finish: FinishReason = "other";
  let before = noUsage;
  const turns = turnCollector();
  let turn: number | undefined;
  /** Whether earlier turns have text, and the text of this turn that was sent. */
  let hasText = false;
  let sent = "";

  function frame(fields: object): string {
    return frameOf({ ...head, object: "chat.completion.chunk", ...fields });
  }

  function chunk(delta: object, finish_reason: string | null = null, more?: object): string {
    return frame({ choices: [{ index: 0, delta, ...more, finish_reason }] });
  }

  function textDelta(text: string): string {
    if (text === "") return "";
    const delta = sent === "" && hasText && !isJson ? `\n\n${text}` : text;
    sent += delta;
    return `${beforeDelta}${JSON.stringify(delta)}},"finish_reason":null}]}\n\n`;
  }

  function endParagraph(): void {
    hasText ||= sent !== "";
    sent = "";
  }

  /** Tells the client to discard the text of this turn, and this reasoning. A client that cannot do so shows the notice. */
  function discard(reasoning_content: string): string {
    const content = isJson ? "" : sent;
    if (!isJson) sent = "";
    if (content + reasoning_content === "") return "";
    const discarded = { ...(content && { content }), ...(reasoning_content && { reasoning_content }) };
    const delta = {
      ...(content && { content: hasText ? notice : `${notice}\n\n` }),
      ...(reasoning_content && { reasoning_content: `${notice}\n\n` }),
    };
    return frame({ discarded, choices: [{ index: 0, delta, finish_reason: null }] });
  }

  /** Begins a turn, or begins it again. */
  function begin(event: EventOf<"model.started" | "model.reset">): string {
    const discarded = event.turn === turn ? discard(turns.current.reasoning) : "";
    if (event.turn !== turn) endParagraph();
    ({ turn } = event);
    turns.add(event);
    return discarded;
  }

  /** Sends the rest of the final text, or the whole if it does not begin with the text that was sent. */
  function finishText(final: string): string {
    const { text } = turns.current;
    return final.startsWith(text) ? textDelta(final.slice(text.length)) : discard("") + textDelta(final);
  }

  function end(event: EndEvent, id: number): string {
    const error = errorOf(event);
    if (error) return frameOf({ error }) + doneFrame;
    endParagraph();
    const { text, calls, finish_reason, ...native } = completionEnd(event, id, { run, session, finish, hasText });
    const tool_calls = calls.map((call, index) => ({ index, ...call }));
    const { logprobs, ...parts } = partFields([...turns.all().flatMap(({ parts }) => parts), ...refusalIn(event)]);
    const hasParts = logprobs !== undefined || Object.keys(parts).length > 0;
    return [
      textDelta(text),
      hasParts ? chunk(parts, null, { logprobs }) : "",
      calls.length > 0 ? chunk({ tool_calls }) : "",
      chunk({}, finish_reason, native),
      includeUsage ? frame({ choices: [], usage: completionUsage(usageSince(event.usage, before)) }) : "",
      doneFrame,
    ].join("");
  }

  const add = (event: EventOf<"part.added" | "provider_tool.started" | "provider_tool.finished">) => {
    turns.add(event);
    return "";
  };

  return tableEncoder({
    "text.delta"(event) {
      turns.add(event);
      return textDelta(event.text);
    },
    "reasoning.delta"(event) {
      turns.add(event);
      return chunk({ reasoning_content: event.text });
    },
    "part.added": add,
    "provider_tool.started": add,
    "provider_tool.finished": add,
    "run.started"(event, id) {
      if (head) return "";
      ({ run, session, usage: before = noUsage } = event);
      head = completionHead(event, id, model);
      beforeDelta = frame({ choices: [{ index: 0, delta: { content: "" } }] }).slice(0, -'""}}]}\n\n'.length);
      return chunk({ role: "assistant", content: "" });
    },
    "turn.started"() {
      finish = "other"; // a hook may answer the turn without the model
      return "";
    },
    "model.started": begin,
    "model.reset": begin,
    "model.finished"(event) {
      finish = event.finish;
      return event.text === undefined ? "" : finishText(event.text);
    },
    "run.paused": end,
    "run.finished": end,
    "run.failed": end,
    "run.aborted": end,
  });
}
