/**
 * Runs whose clients receive only the JSON answer.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import { noUsage } from "../protocol/message.ts";

/**
 * Reduces the text of a run to its JSON answer. A text that begins with a bracket is streamed. Other texts, such as those before a call, are dropped, and an
 * answer of which no text was sent is sent at the end. A stream that has begun one JSON text and gets another fails, because it cannot retract the first.
 */
export function jsonAnswer<R>(encode: (event: Event, id: number) => R, streamed: boolean, none: R): typeof encode {
  let start = "";
  let mode: "start" | "sent" | "dropped" | "failed" = streamed ? "start" : "dropped";
  let hasJson = false;

  function text(event: Extract<Event, { type: "text.delta" }>, id: number): R {
    if (mode === "sent") return encode(event, id);
    if (mode !== "start") return none;
    start += event.text;
    const [first = ""] = start.trimStart();
    if (first === "") return none;
    if (first !== "{" && first !== "[") {
      mode = "dropped";
      return none;
    }
    if (hasJson) return fail(id);
    mode = "sent";
    hasJson = true;
    return encode({ ...event, text: start }, id);
  }

  function fail(id: number): R {
    mode = "failed";
    const message = "Cannot stream the JSON answer: the model began it again";
    return encode({ type: "run.failed", error: "", message, code: "internal", usage: noUsage }, id);
  }

  return (event, id) => {
    if (mode === "failed") return none;
    switch (event.type) {
      case "text.delta":
        return text(event, id);
      case "model.started":
      case "model.reset":
        if (streamed) mode = "start";
        start = "";
        return encode(event, id);
      case "model.finished": {
        const { text: _, ...rest } = event;
        return encode(rest, id);
      }
      case "run.finished":
        return encode(event.output === undefined ? event : { ...event, text: JSON.stringify(event.output) }, id);
      default:
        return encode(event, id);
    }
  };
}
