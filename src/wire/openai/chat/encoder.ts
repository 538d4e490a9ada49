/**
 * Events of a run as chunks of a chat completion. The format cannot retract streamed text, so a model that is asked again begins a new paragraph.
 *
 * @module
 */
import type { AddedPart } from "../../../protocol/part.ts";
import { noUsage, usageSince } from "../../../protocol/message.ts";
import type { FinishReason } from "../../../protocol/response_event.ts";
import { tableEncoder } from "../../encoder.ts";
import { doneFrame, frameOf } from "../../frames.ts";
import type { EventEncoder } from "../../wire.ts";
import { completionEnd, completionHead, completionUsage, partFields } from "./completion.ts";
import { type EndEvent, errorOf, refusalIn } from "../run_error.ts";

/** Creates the encoder of one stream; `includeUsage` adds the token usage at its end. */
export function completionEncoder(model: string, includeUsage: boolean): EventEncoder {
  let run = "";
  let session = "";
  let head: object | undefined;
  /** The frame of a text delta, up to the delta. */
  let beforeDelta = "";
  let finish: FinishReason = "other";
  let before = noUsage;
  let hasText = false;
  let turnHasText = false;
  let needsParagraph = false;

  function frame(fields: object): string {
    return frameOf({ ...head, object: "chat.completion.chunk", ...fields });
  }

  function chunk(delta: object, finish_reason: string | null = null, more?: object): string {
    return frame({ choices: [{ index: 0, delta, ...more, finish_reason }] });
  }

  function partChunk(content: AddedPart): string {
    const { logprobs, ...delta } = partFields([content]);
    return chunk(delta, null, { logprobs });
  }

  function textDelta(text: string): string {
    if (text === "") return "";
    const delta = needsParagraph ? `\n\n${text}` : text;
    hasText = true;
    turnHasText = true;
    needsParagraph = false;
    return `${beforeDelta}${JSON.stringify(delta)}},"finish_reason":null}]}\n\n`;
  }

  function endParagraph(): string {
    turnHasText = false;
    needsParagraph = hasText;
    return "";
  }

  function end(event: EndEvent, id: number): string {
    const error = errorOf(event);
    if (error) return frameOf({ error }) + doneFrame;
    const { text, calls, finish_reason, ...native } = completionEnd(event, id, { run, session, finish, hasText });
    endParagraph();
    const tool_calls = calls.map((call, index) => ({ index, ...call }));
    return [
      textDelta(text),
      ...refusalIn(event).map(partChunk),
      calls.length > 0 ? chunk({ tool_calls }) : "",
      chunk({}, finish_reason, native),
      includeUsage ? frame({ choices: [], usage: completionUsage(usageSince(event.usage, before)) }) : "",
      doneFrame,
    ].join("");
  }

  return tableEncoder({
    "text.delta": ({ text }) => textDelta(text),
    "reasoning.delta": ({ text }) => chunk({ reasoning_content: text }),
    "part.added": ({ content }) => partChunk(content),
    "provider_tool.started": ({ content }) => partChunk(content),
    "provider_tool.finished": ({ content }) => partChunk(content),
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
    "model.started": endParagraph,
    "model.reset": endParagraph,
    "model.finished"(event) {
      finish = event.finish;
      return turnHasText ? "" : textDelta(event.text ?? "");
    },
    "run.paused": end,
    "run.finished": end,
    "run.failed": end,
    "run.aborted": end,
  });
}
