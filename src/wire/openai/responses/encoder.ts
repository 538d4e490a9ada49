/**
 * Events of a run as events of the Responses API.
 *
 * @module
 */
import { noUsage, type Usage, usageSince } from "../../../protocol/message.ts";
import type { AddedPart } from "../../../protocol/part.ts";
import type { Question } from "../../../protocol/question.ts";
import type { FinishReason } from "../../../protocol/event.ts";
import { questionId } from "../../answer.ts";
import { isForClient } from "../../client_tool.ts";
import { tableEncoder } from "../../encoder.ts";
import { finishOfRun, nativeFinish } from "../../finish_reason.ts";
import type { EventEncoder, JsonResponse } from "../../wire.ts";
import { encodeCallId } from "../call_id.ts";
import { responseName } from "../response_name.ts";
import { itemEncoder } from "./items.ts";
import { failedResponse } from "../../failed_response.ts";
import { type EndEvent, errorOf, refusalIn } from "../run_error.ts";

/** The reasons for an incomplete response, by the finish reason of its last turn. */
const incompleteReasons: { readonly [key in FinishReason]?: string } = {
  length: "max_output_tokens",
  filter: "content_filter",
  refusal: "content_filter",
};

/** Creates the encoder of one response of the agent `model`; `onEnd` receives the complete response. */
export function responseEncoder(model: string, onEnd: (response: JsonResponse) => void = () => {}): EventEncoder {
  let idPrefix = "";
  let run = "";
  let session = "";
  let head = {};
  let turn: number | undefined;
  let finish: FinishReason = "other";
  let before = noUsage;
  const items = itemEncoder(() => idPrefix);

  function snapshot(status: string, more: object = {}): object {
    return { ...head, status, output: items.output, ...more };
  }

  function ask(question: Question, pausedAt: number): string {
    const { callId, tool: name, input, questions } = question;
    if (name === undefined) return items.wholeText(questions.join("\n"));
    const call_id = encodeCallId({ session, call: questionId(callId, { run, pausedAt }) });
    const call = { name, arguments: JSON.stringify(input) };
    return items.add(
      isForClient(question)
        ? { id: `fc_${call_id}`, type: "function_call", call_id, ...call }
        : { id: call_id, type: "mcp_approval_request", server_label: model, ...call },
    );
  }

  function end(event: EndEvent, id: number): string {
    let frames = event.type === "run.finished" ? items.finish(event.text) : "";
    frames += refusalIn(event).map(items.part).join("");
    frames += items.close();
    if (event.type === "run.paused") frames += event.questions.map((question) => ask(question, id)).join("");
    const error = errorOf(event);
    const reason = event.type === "run.finished" ? incompleteReasons[finishOfRun(event, finish)] : undefined;
    const status = error ? "failed" : reason ? "incomplete" : "completed";
    const incomplete_details = reason && { reason };
    const native = event.type === "run.finished" ? nativeFinish(event) : {};
    const response = snapshot(status, {
      error,
      incomplete_details,
      ...native,
      usage: usageOf(usageSince(event.usage, before)),
    });
    onEnd(error ? failedResponse(event, { error }) : { status: 200, body: response });
    return frames + items.frame(status, { response });
  }

  const part = ({ content }: { readonly content: AddedPart }) => items.part(content);

  return tableEncoder({
    "text.delta": ({ text }) => items.delta("output_text", text),
    "reasoning.delta": ({ text }) => items.delta("reasoning_text", text),
    "part.added": part,
    "provider_tool.started": part,
    "provider_tool.finished": part,
    "run.started"(event, number) {
      if (idPrefix !== "") return "";
      ({ run, session, usage: before = noUsage } = event);
      idPrefix = responseName(event, number);
      const id = `resp_${encodeCallId({ session, call: idPrefix })}`;
      head = { id, object: "response", created_at: Math.floor(Date.now() / 1_000), model };
      return items.frame("created", { response: snapshot("in_progress") });
    },
    "turn.started"() {
      finish = "other"; // a hook may answer the turn without the model
      return "";
    },
    "model.started"(event) {
      const discarded = event.turn === turn ? items.discard() : ""; // asked again, because the process that asked it first died
      turn = event.turn;
      items.mark();
      return discarded;
    },
    "model.reset": items.discard,
    "model.finished"(event) {
      finish = event.finish;
      const status = incompleteReasons[finish] ? "incomplete" : "completed";
      return event.text === undefined ? items.close(status) : items.replaceText(event.text, status);
    },
    "run.paused": end,
    "run.finished": end,
    "run.failed": end,
    "run.aborted": end,
  });
}

function usageOf({ input, output, cached, cacheWrite, reasoning }: Required<Usage>): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}
