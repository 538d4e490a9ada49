/**
 * Parses streamed chat completions of OpenAI and of compatible servers, which differ in details.
 *
 * @module
 */
import type { ModelEvent } from "../model.ts";
import { callParser } from "./call_parser.ts";
import { addItem, reasoningFields, reasoningLists, thinking } from "./request.ts";
import type { ResponseParser } from "../provider.ts";
import type { ProviderErrors } from "../provider_error.ts";
import { logprobsEvents, noteEvent, refusalEvent, sourceEvent, tokensOf } from "../provider_note.ts";
import { idField, listIn, numberIn, objectIn, objectsIn, stringIn, unreadable, unreadWarnings } from "../response.ts";
import type { FinishReason } from "../../protocol/event.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/message.ts";
import type { TokenLogprob } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";

// Token counts in chat completions, which servers report in different places and forms.

/** Adds up the counts. Most servers count reasoning within the output, and some beside it: then it is larger, or the total shows it. */
function usageOf(counts: UnknownObject): Usage {
  const input = numberIn(counts, "prompt_tokens");
  const written = numberIn(counts, "completion_tokens");
  const total = numberIn(counts, "total_tokens");
  const read = objectIn(counts, "prompt_tokens_details");
  const reasoning = numberIn(objectIn(counts, "completion_tokens_details"), "reasoning_tokens") ||
    numberIn(counts, "reasoning_tokens");
  const isBeside = reasoning > written || (reasoning > 0 && total === input + written + reasoning);
  return addUsage(noUsage, {
    input,
    output: isBeside ? written + reasoning : written,
    cached: firstCount([read, "cached_tokens"], [counts, "prompt_cache_hit_tokens"], [counts, "cached_tokens"]),
    cacheWrite: firstCount([read, "cache_write_tokens"], [read, "cache_creation_tokens"], [
      counts,
      "cache_creation_input_tokens",
    ]),
    reasoning,
  });
}

/** Returns the first count that is not 0. Servers name it differently. */
function firstCount(...places: readonly (readonly [UnknownObject, string])[]): number {
  return places.map(([from, name]) => numberIn(from, name)).find((count) => count > 0) ?? 0;
}

// Speech of models that answer with audio, which chat completions stream in pieces beside a transcript.

/** Collects the speech of one response. */
interface AudioParser {
  /** Adds a piece. Returns its transcript. */
  readonly add: (audio: UnknownObject) => string;
  /** Returns the event of the recording; nothing if there is none. */
  readonly end: () => readonly ModelEvent[];
}

/** Creates a parser for one response of `model`. Streams contain samples of 16 bits, at 24 kHz, without a header. */
function audioParser(model: string): AudioParser {
  const pieces: string[] = [];
  let id = "";
  return {
    add(audio) {
      id = stringIn(audio, "id") || id;
      pieces.push(atob(stringIn(audio, "data")));
      return stringIn(audio, "transcript");
    },
    end() {
      const bytes = pieces.join("");
      if (bytes === "") return [];
      const meta = { model, audio: id }; // the provider keeps the recording for an hour
      return [{ type: "part", part: { type: "media", mediaType: "audio/pcm;rate=24000", data: btoa(bytes), meta } }];
    },
  };
}

// The parser of a streamed response: each chunk becomes the events of the model.

const reasons = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["end_turn", "stop"],
  ["tool_calls", "calls"],
  ["tool_use", "calls"],
  ["function_call", "calls"],
  ["length", "length"],
  ["model_length", "length"],
  ["max_tokens", "length"],
  ["content_filter", "filter"],
  ["sensitive", "filter"],
]);

/** Matches the finish reasons of a failure: servers end a response with them that they cannot complete. */
const failed = /error|abort|insufficient|malformed/i;

/** Creates a parser for one response of `model`. */
export function responseParser(model: string, errors: ProviderErrors): ResponseParser {
  const calls = callParser(model);
  /** The sources, by address: some servers repeat all of them in each chunk. */
  const sources = new Map<string, ModelEvent>();
  /** The reasoning that is not noted yet: the field of its text, and its items by the name of their list. */
  let field: string | undefined;
  let items: Record<string, UnknownObject[]> = {};
  let extra: unknown;
  let hasField = false;
  let hasDelta = false;
  /** The number of the choice that is read. */
  let index: unknown;
  let reason = "";
  let responseId: unknown;
  let counts: UnknownObject | undefined;
  let refusal = "";
  const tokens: TokenLogprob[] = [];
  const audio = audioParser(model);
  const warn = unreadWarnings(model);

  function parse(frame: UnknownObject, events: ModelEvent[]): boolean {
    const vendor = objectIn(frame, "x_groq");
    if (vendor.error) throw errors.fromBody(vendor);
    const { status_code: code, status_msg: message } = objectIn(frame, "base_resp"); // of MiniMax
    if (code) throw errors.fromBody({ message, code });
    responseId ||= frame.id;
    count(frame);
    count(vendor);
    const choices = objectsIn(frame, "choices");
    index ??= choices[0]?.index;
    for (const choice of choices) {
      if ((choice.index ?? index) === index) parseChoice(choice, events);
      else warn("several choices, of which only one is read", events);
    }
    addSources(listIn(frame, "citations"));
    addSources(listIn(frame, "search_results"));
    return false;
  }

  /** Parses a choice. Some servers send a message in place of a delta, and others both, to repeat the deltas as a whole. */
  function parseChoice(choice: UnknownObject, events: ModelEvent[]): void {
    if (choice.error) throw errors.fromBody(choice);
    count(choice);
    const delta = objectIn(choice, "delta");
    const message = objectIn(choice, "message");
    const finishReason = stringIn(choice, "finish_reason");
    if (failed.test(finishReason)) throw errors.fromBody({ message: failureOf(finishReason, choice, message) });
    if (finishReason !== "" && finishReason !== "null") reason = finishReason;
    const before = events.length;
    if (hasDelta || Object.keys(delta).length > 0) {
      parseDelta(delta, events);
      calls.add(piecesIn(message), events, true);
    } else parseDelta(message, events);
    hasDelta ||= Object.keys(delta).length > 0 && events.length > before;
    const logprobs = objectIn(choice, "logprobs");
    for (const token of tokensOf(logprobs.content ?? logprobs.refusal)) tokens.push(token);
  }

  function parseDelta(delta: UnknownObject, events: ModelEvent[]): void {
    parseReasoning(delta, events);
    const { content } = delta;
    if (Array.isArray(content)) { for (const part of listIn(delta, "content")) parsePart(part, events); }
    else addText(stringIn(delta, "content"), events);
    addRefusal(stringIn(delta, "refusal"), events);
    if (delta.audio) addText(audio.add(objectIn(delta, "audio")), events);
    addSources(listIn(delta, "annotations"));
    for (const image of objectsIn(delta, "images")) addImage(image, events);
    extra = delta.extra_content ?? extra;
    if (listIn(delta, "executed_tools").length > 0) warn("calls that the server has run itself", events);
    const pieces = piecesIn(delta);
    if (pieces.length > 0) endReasoning(events);
    calls.add(pieces, events, false);
  }

  function addText(text: string, events: ModelEvent[]): void {
    if (text === "") return;
    endReasoning(events);
    events.push({ type: "text", text });
  }

  function addRefusal(text: string, events: ModelEvent[]): void {
    refusal += text;
    addText(text, events);
  }

  /** Parses a part of content that is a list, as Mistral sends it. */
  function parsePart(part: unknown, events: ModelEvent[]): void {
    if (typeof part === "string") return addText(part, events);
    if (!isObject(part)) return unreadable("content", "parts", part);
    switch (part.type) {
      case "text":
      case "output_text":
        return addText(stringIn(part, "text"), events);
      case "refusal":
        return addRefusal(stringIn(part, "refusal"), events);
      case "image_url":
        return addImage(part, events);
      case thinking: {
        const pieces = typeof part.thinking === "string" ? [part.thinking] : listIn(part, "thinking");
        return addReasoning(thinking, pieces.map((piece) => thinkingText(piece, events)).join(""), events);
      }
      default:
        return warn(`a part of content of type "${part.type}"`, events);
    }
  }

  function thinkingText(piece: unknown, events: ModelEvent[]): string {
    if (typeof piece === "string") return piece;
    if (isObject(piece) && piece.type === "text") return stringIn(piece, "text");
    warn(`a part of thinking of type "${Object(piece).type}"`, events);
    return "";
  }

  /** Parses reasoning: as text, as a list of items, or both, which repeat each other. */
  function parseReasoning(delta: UnknownObject, events: ModelEvent[]): void {
    const texts = reasoningFields.map((name) => [name, stringIn(delta, name)] as const);
    const [name, text] = texts.find(([, text]) => text !== "") ?? [];
    if (name && text) {
      hasField = true;
      addReasoning(name, text, events);
    }
    for (const list of reasoningLists) {
      for (const item of objectsIn(delta, list)) {
        const added = addItem(items[list] ??= [], item);
        if (!hasField && added !== "") events.push({ type: "reasoning", text: added });
      }
    }
  }

  /** Adds reasoning, and keeps its field for the note. */
  function addReasoning(name: string, text: string, events: ModelEvent[]): void {
    if (text === "") return;
    events.push({ type: "reasoning", text });
    field = name;
  }

  /** Ends the reasoning part with a note of its field and its items. */
  function endReasoning(events: ModelEvent[]): void {
    if (field || Object.keys(items).length > 0) events.push(noteEvent(model, { field, ...items }));
    field = undefined;
    items = {};
  }

  /** Keeps sources until the end: annotations of OpenAI, or pages and addresses in the last chunks of other servers. */
  function addSources(annotations: readonly unknown[]): void {
    for (const source of annotations) {
      const { url, title }: UnknownObject = isObject(source) ? Object(source.url_citation ?? source) : { url: source };
      if (typeof url === "string" && url !== "" && (title || !sources.has(url))) {
        sources.set(url, sourceEvent({ url, title }));
      }
    }
  }

  /** Adds an image that the model generated. */
  function addImage(image: UnknownObject, events: ModelEvent[]): void {
    const url = typeof image.image_url === "string" ? image.image_url : stringIn(objectIn(image, "image_url"), "url");
    const [, mediaType = "image/*", data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
    if (url === "") return;
    endReasoning(events);
    events.push({ type: "part", part: { type: "media", mediaType, ...(data === undefined ? { url } : { data }) } });
  }

  /** Merges counts: they may come in several places, and a later chunk may leave them out or report none. */
  function count(from: UnknownObject): void {
    const entries = Object.entries(objectIn(from, "usage")).filter(([, value]) => value);
    if (from.usage) counts = { ...counts, ...Object.fromEntries(entries) };
  }

  /** Ends all calls here: only now is it certain that no more input follows. */
  function end(complete: boolean): readonly ModelEvent[] {
    if (!complete && reason === "") return [];
    const events: ModelEvent[] = [];
    endReasoning(events);
    if (extra) events.push(noteEvent(model, { extra }));
    events.push(...sources.values(), ...logprobsEvents(tokens), ...audio.end());
    if (refusal !== "") events.push(refusalEvent(refusal));
    const mapped = reasons.get(reason.toLowerCase().replace(/:.*/s, "") || "stop") ?? "other";
    const isWhole = mapped === "stop" || mapped === "calls";
    const ends = calls.end(isWhole);
    // a refusal ends with "stop", and so do calls of some servers
    const finish = !isWhole ? mapped : refusal !== "" ? "refusal" : ends.length > 0 ? "calls" : mapped;
    const facts = { ...(counts && { usage: usageOf(counts) }), ...idField(responseId) };
    return [...events, ...ends, { type: "finish", reason: finish, ...facts }];
  }

  /** Frames must be parsed that contain more than the text of their event. */
  function readsAll(): boolean {
    return refusal !== "" || tokens.length > 0 || Object.keys(items).length > 0;
  }

  return { parse, end, readsAll };
}

/** Returns the calls in a delta or a message: a list, a single one, or one in the member of an older API. */
function piecesIn(delta: UnknownObject): readonly UnknownObject[] {
  const { tool_calls: calls, function_call: older } = delta;
  const pieces = isObject(calls) ? [calls] : objectsIn(delta, "tool_calls");
  return older ? [...pieces, { index: "function_call", function: objectIn(delta, "function_call") }] : pieces;
}

/** Returns the message of a response that ended with the reason of a failure. */
function failureOf(
  reason: string,
  { native_finish_reason: native }: UnknownObject,
  { content }: UnknownObject,
): string {
  const why = [native, content].find((text) => typeof text === "string" && text !== "" && text !== reason);
  return `the response ended with the finish reason "${reason}"${why ? `: ${why}` : ""}`;
}
