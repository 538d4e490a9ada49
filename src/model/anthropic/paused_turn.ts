/**
 * Continues responses that the provider pauses while it runs its own tools.
 *
 * @module
 */
import { addUsage, noUsage } from "../../protocol/message.ts";
import type { AnswerPart } from "../../protocol/part.ts";
import type { ModelEvent, ModelRequest } from "../model.ts";
import { type MessageParser, responseParser } from "./response_parser.ts";

/** Sends a request and parses its response. */
type Send = (request: ModelRequest, parser: MessageParser) => AsyncIterable<readonly ModelEvent[]>;

/** Sends a request, and sends it again together with the response so far whenever the provider pauses. */
export async function* continuePaused(
  request: ModelRequest,
  model: string,
  send: Send,
): AsyncGenerator<readonly ModelEvent[]> {
  const parts: AnswerPart[] = [];
  let usage = noUsage;
  for (let isPaused = true; isPaused;) {
    isPaused = false;
    const parser = responseParser(model);
    const messages = parts.length === 0
      ? request.messages
      : [...request.messages, { role: "assistant", parts } as const];
    for await (const events of send({ ...request, messages }, parser)) {
      const last = events.at(-1);
      for (const event of events) append(parts, event);
      if (last?.type !== "finish") yield events;
      else {
        usage = addUsage(usage, last.usage ?? noUsage);
        isPaused = parser.isPaused();
        yield [...events.slice(0, -1), ...(isPaused ? [] : [{ ...last, usage }])];
      }
    }
  }
}

/** Appends an event to the parts of a response. The provider does not pause within a call. */
function append(parts: AnswerPart[], event: ModelEvent): void {
  if (event.type === "part") parts.push(event.part);
  if (event.type !== "text" && event.type !== "reasoning") return;
  const last = parts.at(-1);
  if (last?.type === event.type && !("meta" in last)) {
    parts.splice(-1, 1, { ...last, ...event, text: last.text + event.text });
  } else parts.push(event);
}
