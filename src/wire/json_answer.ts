/**
 * Runs whose clients receive only the JSON answer.
 *
 * @module
 */
import { canonicalJson } from "../core/lib/json.ts";
import type { Event } from "../protocol/event.ts";
import type { EventEncoder, EventOf, ResponseCollector } from "./wire.ts";

// The rest of a JSON text whose beginning was sent before the value was known.

/** Creates a counter of brackets. It takes a text in pieces, and returns the number of brackets that are open after each. */
function depthCounter(): (piece: string) => number {
  let depth = 0;
  let isString = false;
  let isEscaped = false;
  return (piece) => {
    for (const char of piece) {
      if (isEscaped) isEscaped = false;
      else if (isString) {
        isEscaped = char === "\\";
        isString = char !== '"';
      } else if (char === '"') isString = true;
      else if (char === "{" || char === "[") depth++;
      else if (char === "}" || char === "]") depth--;
    }
    return depth;
  };
}

/**
 * Returns the text that completes `sent` to the value of the JSON text `answer`: `pending`, if it does, or one that repeats the members of the object. Returns
 * undefined if no text does.
 */
function continuationOf(sent: string, pending: string, answer: string): string | undefined {
  const value = parsed(answer);
  if (value === undefined) return answer.startsWith(sent) ? answer.slice(sent.length) : undefined;
  const target = canonicalJson(value);
  const completes = (rest: string) => canonicalJson(parsed(sent + rest)) === target;
  const whole = JSON.stringify(value);
  if (completes(pending)) return pending;
  if (whole.startsWith(sent)) return whole.slice(sent.length);
  const closing = closingOf(sent);
  const inner = closing.slice(0, -1);
  for (const ending of endings(value)) {
    const partial = parsed(sent + ending + closing);
    if (partial === undefined) continue;
    const missing = Array.isArray(value) && Array.isArray(partial) ? value.slice(partial.length) : value;
    const members = JSON.stringify(missing).slice(1);
    const rest = [`${ending}${inner},${members}`, `${ending}${inner}${members}`].find(completes);
    if (rest !== undefined) return rest;
  }
  return undefined;
}

/** Returns the value of a JSON text; undefined for another text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the brackets that close those which `text` leaves open. */
function closingOf(text: string): string {
  let closing = "";
  for (const [bracket] of text.replaceAll(/"(?:[^"\\]|\\.)*(?:"|\\?$)/gs, "").matchAll(/[[\]{}]/g)) {
    if (bracket === "{") closing = `}${closing}`;
    else if (bracket === "[") closing = `]${closing}`;
    else closing = closing.slice(1);
  }
  return closing;
}

/** The ends of a text that breaks off within a string, also within an escape. */
const stringEnds = ["", "\\", "0", "00", "000", "0000"].map((escape) => `${escape}"`);

/** Returns texts that may complete the last key or value of a text. Those of a value come first, so that `value` replaces it. */
function endings(value: unknown): readonly string[] {
  const names = Object.keys(Object(value)).map((name) => JSON.stringify(name)); // an own name completes the key of a member
  const keys = names.flatMap((name) => Array.from(name, (_, index) => name.slice(index)));
  const literals = ["true", "false", "null"].flatMap((word) => Array.from(word, (_, index) => word.slice(index)));
  return ["", ...stringEnds, ...literals, "0", ...[...keys, ...stringEnds, ""].map((end) => `${end}:null`), '"":null'];
}

// Encoders and collectors that keep only the JSON answer.

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
    start(next: TextMode = "start"): void {
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
  let pending = "";
  let turn = 0;

  function delta(text: string, id: number): string {
    sent += text;
    return text === "" ? "" : encode({ type: "text.delta", turn, part: 0, text }, id);
  }

  function end(event: EventOf<"run.finished">, id: number): string {
    const { text, status, finish } = event;
    if (sent + pending === "") return encode(event, id);
    const rest = continuationOf(sent, pending, text);
    const isWhole = status === "done" && finish !== "length" && finish !== "filter"; // the client knows the other answers by their finish reason
    if (rest === undefined && isWhole) return encode(failureOf(event), id);
    return delta(rest ?? "", id) + encode(event, id);
  }

  return (runEvent, id) => {
    const event = answerOnly(runEvent);
    switch (event.type) {
      case "text.delta": {
        const piece = texts.add(event.text);
        if (piece === "") return "";
        if (pending === "" && depthAfter(piece) > 0) return delta(piece, id);
        pending += piece;
        return "";
      }
      case "model.started":
      case "model.reset":
        ({ turn } = event);
        pending = "";
        texts.start(sent === "" ? "start" : "dropped");
        return encode(event, id);
      case "run.paused": {
        const rest = pending;
        pending = "";
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

  return (runEvent, id) => {
    const event = answerOnly(runEvent);
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
        texts.start();
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
