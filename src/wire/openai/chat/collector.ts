/**
 * Events of a run as a chat completion with one JSON body.
 *
 * @module
 */
import type { FinishReason } from "../../../protocol/response_event.ts";
import type { AddedPart } from "../../../protocol/part.ts";
import { failedResponse } from "../../failed_response.ts";
import type { JsonResponse, ResponseCollector } from "../../wire.ts";
import { completionEnd, completionHead, completionUsage, logprobsField, partFields } from "./completion.ts";
import { type EndEvent, errorOf } from "../run_error.ts";

/** Creates the collector of one completion. */
export function completionCollector(model: string): ResponseCollector {
  let run = "";
  let session = "";
  let finish: FinishReason = "other";
  /** Text and reasoning by turn, because a turn may begin again. */
  const turns = new Map<number, { texts: string[]; thoughts: string[]; parts: AddedPart[] }>();

  function responseOf(end: EndEvent, id: number): JsonResponse {
    const error = errorOf(end);
    if (error) return failedResponse(end, { error });
    const texts = [...turns.values()].map(({ texts }) => texts.join("")).filter((text) => text !== "");
    const { text, calls, finish_reason } = completionEnd(end, id, { session, finish, hasText: texts.length > 0 });
    const reasoning_content = [...turns.values()].flatMap(({ thoughts }) => thoughts).join("");
    const parts = [...turns.values()].flatMap(({ parts }) => parts);
    const message = {
      role: "assistant",
      content: [...texts, ...text === "" ? [] : [text]].join("\n\n") || null,
      ...(reasoning_content !== "" && { reasoning_content }),
      ...(calls.length > 0 && { tool_calls: calls }),
      refusal: null,
      ...partFields(parts),
    };
    const choices = [{ index: 0, message, finish_reason, logprobs: logprobsField(parts) ?? null }];
    const usage = completionUsage(end.usage);
    return { status: 200, body: { ...completionHead(run, model), object: "chat.completion", choices, usage } };
  }

  return (event, id) => {
    switch (event.type) {
      case "run.started":
        ({ run, session } = event);
        break;
      case "model.started":
      case "model.reset":
        turns.set(event.turn, { texts: [], thoughts: [], parts: [] });
        break;
      case "part.added":
      case "provider_tool.started":
      case "provider_tool.finished":
        turns.get(event.turn)?.parts.push(event.content);
        break;
      case "text.delta":
        turns.get(event.turn)?.texts.push(event.text);
        break;
      case "reasoning.delta":
        turns.get(event.turn)?.thoughts.push(event.text);
        break;
      case "model.finished":
        finish = event.finish;
        if (event.text !== undefined) turns.get(event.turn)?.texts.splice(0, Infinity, event.text);
        break;
      case "run.paused":
      case "run.finished":
      case "run.failed":
      case "run.aborted":
        return responseOf(event, id);
    }
    return undefined;
  };
}
