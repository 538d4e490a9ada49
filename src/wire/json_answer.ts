/**
 * Runs whose clients receive only the JSON answer.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import type { EventOf } from "./encoder.ts";
import { continuationOf, depthCounter } from "./json_continuation.ts";
import type { EventEncoder, ResponseCollector } from "./wire.ts";

/** Reduces the text of a run to its JSON answer, for a response with one JSON body. */
export function collectJson(collect: ResponseCollector): ResponseCollector {
  return (event, id) => event.type === "text.delta" ? undefined : collect(answerOnly(event), id);
}

/** Returns an event without the text of a response, and with the structured output as the text of the run. */
function answerOnly(event: Event): Event {
  if (event.type === "run.finished" && event.output !== undefined) {
    return { ...event, text: JSON.stringify(event.output) };
  }
  if (event.type !== "model.finished") return event;
  const { text: _, ...rest } = event;
  return rest;
}

/** A text that is not the answer is dropped. A text that begins with a bracket may be the answer, and is sent. */
type TextMode = "start" | "sent" | "dropped";

/** Finds the texts of a run that may be its JSON answer: those that begin with a bracket. */
function jsonTexts() {
  let start = "";
  let mode: TextMode = "start";
  return {
    /** Begins another text. */
    begin(next: TextMode = "start"): void {
      start = "";
      mode = next;
    },
    /** Returns the piece of the JSON text that can be sent now. */
    add(text: string): string {
      if (mode === "sent") return text;
      if (mode === "dropped") return "";
      start += text;
      const [first = ""] = start.trimStart();
      if (first === "") return "";
      mode = first === "{" || first === "[" ? "sent" : "dropped";
      return mode === "sent" ? start : "";
    },
  };
}

/**
 * Reduces the text of a run to its JSON answer, for a stream that cannot take text back. The first text that begins with a bracket is sent while the model writes
 * it, except for its end. If the model begins again, the rest is sent once the run has its answer: it repeats the members of the object, and parsers of JSON take
 * the last member of a name. If the sent text has a member that the answer does not have, or an element of an array that differs, the stream fails. An answer of
 * which no text was sent is sent at the end.
 */
export function appendJson(encode: EventEncoder): EventEncoder {
  const texts = jsonTexts();
  const depthAfter = depthCounter();
  let sent = "";
  /** The text from the piece on that closes the outermost bracket. */
  let held = "";
  let turn = 0;

  function delta(text: string, id: number): string {
    sent += text;
    return text === "" ? "" : encode({ type: "text.delta", turn, part: 0, text }, id);
  }

  function end(event: EventOf<"run.finished">, id: number): string {
    const { text, status, finish } = event;
    if (sent + held === "") return encode(event, id);
    const rest = continuationOf(sent, held, text);
    const isWhole = status === "done" && finish !== "length" && finish !== "filter"; // the client knows the other answers by their finish reason
    if (rest === undefined && isWhole) return encode(failureOf(event), id);
    return delta(rest ?? "", id) + encode(event, id);
  }

  return (given, id) => {
    const event = answerOnly(given);
    switch (event.type) {
      case "text.delta": {
        const piece = texts.add(event.text);
        if (piece === "") return "";
        if (held === "" && depthAfter(piece) > 0) return delta(piece, id);
        held += piece;
        return "";
      }
      case "model.started":
      case "model.reset":
        ({ turn } = event);
        held = "";
        texts.begin(sent === "" ? "start" : "dropped");
        return encode(event, id);
      case "run.paused": {
        const rest = held;
        held = "";
        return delta(rest, id) + encode(event, id);
      }
      case "run.finished":
        return end(event, id);
      default:
        return encode(event, id);
    }
  };
}

function failureOf({ usage }: EventOf<"run.finished">): Event {
  const message = "Cannot stream the JSON answer: the model began it again, and a part that was sent is not in it";
  return { type: "run.failed", error: "", message, code: "internal", usage };
}

/**
 * Reduces the text of a run to its JSON answer, for a stream that can replace the text of a turn. Each text that begins with a bracket is sent while the model
 * writes it, and replaced by an empty one if it turns out not to be the answer. An answer of which no text was sent is sent at the end.
 */
export function replaceJson(encode: EventEncoder): EventEncoder {
  const texts = jsonTexts();
  let sent = "";
  let finished: EventOf<"model.finished"> | undefined;

  /** Takes back the text of a turn that has ended. */
  function takeBack(id: number): string {
    const isSent = sent !== "";
    sent = "";
    return isSent && finished ? encode({ ...finished, text: "" }, id) : "";
  }

  return (given, id) => {
    const event = answerOnly(given);
    switch (event.type) {
      case "text.delta": {
        const text = texts.add(event.text);
        sent += text;
        return text === "" ? "" : encode({ ...event, text }, id);
      }
      case "model.started":
      case "model.reset": {
        const before = takeBack(id);
        sent = "";
        finished = undefined;
        texts.begin();
        return before + encode(event, id);
      }
      case "model.finished":
        finished = event;
        return encode(event, id);
      case "run.finished": {
        const isAnswer = event.status !== "done" || continuationOf(sent, "", event.text) === "";
        return (isAnswer ? "" : takeBack(id)) + encode(event, id);
      }
      default:
        return encode(event, id);
    }
  };
}
