/**
 * Events of a run as a chat completion with one JSON body.
 *
 * @module
 */
import { noUsage, usageSince } from "../../../protocol/message.ts";
import type { Event, FinishReason } from "../../../protocol/event.ts";
import type { AddedPart } from "../../../protocol/part.ts";
import { failedResponse } from "../../failed_response.ts";
import type { JsonResponse, ResponseCollector } from "../../wire.ts";
import { completionEnd, completionHead, completionUsage, partFields } from "./completion.ts";
import { type EndEvent, errorOf, refusalIn } from "../run_error.ts";

/** The output of one turn. */
interface Turn {
  text: string;
  reasoning: string;
  parts: AddedPart[];
}

/** Collects the output of each turn. A turn that begins again replaces its first output. */
export interface TurnCollector {
  /** The turn that the model writes. */
  readonly current: Readonly<Turn>;
  /** The turns so far. */
  all(): readonly Turn[];
  /** Adds an event of a response. */
  add(event: Event): void;
}

/** Creates the collector of one completion. */
export function turnCollector(): TurnCollector {
  const turns = new Map<number, Turn>();
  const none: Turn = { text: "", reasoning: "", parts: [] };
  const collector = {
    current: none,
    all: () => [...turns.values()],
    add(event: Event): void {
      const { current } = collector;
      switch (event.type) {
        case "model.started":
        case "model.reset":
          collector.current = { text: "", reasoning: "", parts: [] };
          turns.set(event.turn, collector.current);
          break;
        case "part.added":
        case "provider_tool.started":
        case "provider_tool.finished":
          current.parts.push(event.content);
          break;
        case "text.delta":
          current.text += event.text;
          break;
        case "reasoning.delta":
          current.reasoning += event.text;
          break;
        case "model.finished":
          current.text = event.text ?? current.text;
      }
    },
  };
  return collector;
}

/** Creates the collector of one completion. */
export function completionCollector(model: string): ResponseCollector {
  let head: object | undefined;
  let run = "";
  let session = "";
  let finish: FinishReason = "other";
  let before = noUsage;
  const turns = turnCollector();

  function responseOf(end: EndEvent, id: number): JsonResponse {
    const error = errorOf(end);
    if (error) return failedResponse(end, { error });
    const all = turns.all();
    const texts = all.map(({ text }) => text).filter((text) => text !== "");
    const { text, calls, ...reasons } = completionEnd(end, id, { run, session, finish, hasText: texts.length > 0 });
    const reasoning_content = all.map(({ reasoning }) => reasoning).join("");
    const { logprobs = null, ...fields } = partFields([...all.flatMap(({ parts }) => parts), ...refusalIn(end)]);
    const message = {
      role: "assistant",
      content: [...texts, ...text === "" ? [] : [text]].join("\n\n") || null,
      ...(reasoning_content !== "" && { reasoning_content }),
      ...(calls.length > 0 && { tool_calls: calls }),
      refusal: null,
      ...fields,
    };
    const choices = [{ index: 0, message, ...reasons, logprobs }];
    const usage = completionUsage(usageSince(end.usage, before));
    return { status: 200, body: { ...head, object: "chat.completion", choices, usage } };
  }

  return (event, id) => {
    turns.add(event);
    switch (event.type) {
      case "run.started":
        if (head) break;
        head = completionHead(event, id, model);
        ({ run, session, usage: before = noUsage } = event);
        break;
      case "turn.started":
        finish = "other"; // a hook may answer the turn without the model
        break;
      case "model.finished":
        finish = event.finish;
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
