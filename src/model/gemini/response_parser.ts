/**
 * Parses streamed `generateContent` responses: each frame holds parts that are complete, except for text, which continues.
 *
 * @module
 */
import { builtInParser } from "./request.ts";
import { ModelError, type ModelEvent } from "../model.ts";
import type { ResponseParser } from "../provider.ts";
import { logprobsEvents, noteEvent, refusalEvent, sourceEvent, tokensOf } from "../provider_note.ts";
import { idField, numberIn, objectIn, objectsIn, stringIn, unreadable, unreadWarnings } from "../response.ts";
import type { FinishReason } from "../../protocol/event.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/message.ts";
import type { TokenLogprob } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";

// Calls that Gemini streams: each frame has further values of the input, with the path of each.

/** An object or an array that is being built. */
type Container = Record<string, unknown>;

/** Collects the input of a call. */
interface PartialCall {
  readonly name: string;
  readonly id: unknown;
  /** Adds the values of a frame. */
  readonly add: (call: UnknownObject) => void;
  /** The input so far. */
  readonly input: Container;
}

/** Creates the call that a frame begins. */
function partialCall(first: UnknownObject): PartialCall {
  const input: Container = { ...objectIn(first, "args") };
  function add(call: UnknownObject): void {
    for (const partial of objectsIn(call, "partialArgs")) {
      assign(input, stringIn(partial, "jsonPath"), valueOf(partial));
    }
  }
  add(first);
  return { name: stringIn(first, "name"), id: first.id, add, input };
}

/** Returns the value of a piece. */
function valueOf(partial: UnknownObject): unknown {
  const name = ["stringValue", "numberValue", "boolValue", "nullValue"].find((name) => name in partial);
  if (name === undefined) return ""; // a text that begins or ends
  return name === "nullValue" ? null : partial[name];
}

/** Sets the value at a path such as `$.cities[0].name`. A text continues the text at this path. */
function assign(input: Container, path: string, value: unknown): void {
  const keys = [...path.matchAll(/\.([^.[\]]+)|\[(\d+)\]|\['([^']*)'\]|\["([^"]*)"\]/g)].map((match) =>
    match[1] ?? match[2] ?? match[3] ?? match[4] ?? ""
  );
  const last = keys.pop();
  if (last === undefined || !path.startsWith("$")) unreadable("jsonPath", "a path below `$`", path);
  let target = input;
  for (const [index, key] of keys.entries()) {
    const next = keys[index + 1] ?? last;
    const isIn = Object.hasOwn(target, key) && (isObject(target[key]) || Array.isArray(target[key]));
    if (!isIn) set(target, key, /^\d+$/.test(next) ? [] : {});
    target = target[key] as Container; // made or found above
  }
  const before = Object.hasOwn(target, last) ? target[last] : undefined;
  set(target, last, typeof before === "string" && typeof value === "string" ? before + value : value);
}

/** Sets an own member, also one that is named `__proto__`. */
function set(target: Container, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

// The parser of a streamed response: each frame becomes the events of the model.

/** The reasons of Google's filters, and of a prompt that they blocked. */
const filtered = /^((IMAGE_)?(SAFETY|RECITATION|PROHIBITED_CONTENT)|BLOCKLIST|SPII|MODEL_ARMOR|blocked)$/;

/** Matches the members of parts that are sent back without being shown. */
const silent = /^(text|thought|thoughtSignature|inlineData|partMetadata)$/;

function finishReasonOf(reason: string): FinishReason {
  if (filtered.test(reason)) return "filter";
  return reason === "STOP" ? "stop" : reason === "MAX_TOKENS" ? "length" : "other";
}

/** Creates a parser for one response of `model`. */
export function responseParser(model: string): ResponseParser {
  const builtIn = builtInParser(model);
  const ids = new Set<string>();
  const warn = unreadWarnings(model);
  /** The id of the last call, if it has no input, and nothing has followed it. */
  let unclosed: string | undefined;
  /** The call that is streamed in pieces. */
  let streaming: PartialCall | undefined;
  const tokens: TokenLogprob[] = [];
  let reason = "";
  let refusal: ModelEvent | undefined;
  let usage: UnknownObject | undefined;
  let responseId: unknown;
  let grounding: unknown;
  let urlContextMetadata: unknown;

  function parse(frame: UnknownObject, events: ModelEvent[]): boolean {
    builtIn.name(responseId = frame.responseId ?? responseId);
    if (frame.usageMetadata) usage = objectIn(frame, "usageMetadata");
    const { blockReason, blockReasonMessage } = objectIn(frame, "promptFeedback");
    if (blockReason) {
      reason = "blocked";
      refusal = refusalEvent(blockReasonMessage, blockReason);
    }
    const [candidate, ...more] = objectsIn(frame, "candidates");
    if (more.length > 0) warn("several candidates, of which only one is read", events);
    if (!candidate) return false;
    grounding = candidate.groundingMetadata ?? grounding;
    urlContextMetadata = candidate.urlContextMetadata ?? urlContextMetadata;
    reason = stringIn(candidate, "finishReason") || reason;
    if (filtered.test(reason)) refusal = refusalEvent(candidate.finishMessage, reason);
    for (const token of logprobsOf(candidate.logprobsResult)) tokens.push(token);
    for (const part of objectsIn(objectIn(candidate, "content"), "parts")) parsePart(part, events);
    return false;
  }

  /** The signature of a call precedes it as a note, since a call has no note of its own. Unknown parts are noted, to be sent back. */
  function parsePart(part: UnknownObject, events: ModelEvent[]): void {
    if (part.text !== "") endEmptyCall(events);
    const { thought, thoughtSignature: signature, functionCall, inlineData } = part;
    const text = stringIn(part, "text");
    if (functionCall) {
      if (signature) events.push(noteEvent(model, { callSignature: signature }));
      parseCall(objectIn(part, "functionCall"), events);
    } else if (typeof part.text === "string") {
      if (text !== "") events.push({ type: thought ? "reasoning" : "text", text });
      if (signature) events.push(noteEvent(model, { [thought ? "thoughtSignature" : "textSignature"]: signature }));
    } else if (isObject(inlineData) && !thought) events.push(fileEvent(inlineData, signature));
    else {
      const event = builtIn.parse(part);
      const unknown = Object.keys(part).find((name) => !silent.test(name));
      if (!event && unknown !== undefined) warn(`a part with \`${unknown}\``, events);
      events.push(event ?? noteEvent(model, { part }));
    }
  }

  function fileEvent({ mimeType, data }: UnknownObject, signature: unknown): ModelEvent {
    const meta = signature ? { meta: { model, signature: stringIn({ signature }, "signature") } } : {};
    return {
      type: "part",
      part: { type: "media", mediaType: stringIn({ mimeType }, "mimeType"), data: stringIn({ data }, "data"), ...meta },
    };
  }

  /** Parses a call. One that is streamed ends with the first frame that announces no further one. */
  function parseCall(call: UnknownObject, events: ModelEvent[]): void {
    const { id, args, willContinue } = call;
    if (!streaming && !willContinue && !call.partialArgs) return addCall({ id, name: call.name, args }, events);
    if (streaming && call.name) endStreaming(streaming, events); // another call begins
    if (streaming) streaming.add(call);
    else streaming = partialCall(call);
    if (!willContinue) endStreaming(streaming, events);
  }

  function endStreaming({ id, name, input }: PartialCall, events: ModelEvent[]): void {
    addCall({ id, name, args: input }, events);
    streaming = undefined;
  }

  /** Returns the id of a call, which no other call of the response has. */
  function newId(value: unknown): string {
    let id = stringIn({ id: value }, "id") || `call_${ids.size}`;
    while (ids.has(id)) id += "_";
    ids.add(id);
    return id;
  }

  function addCall({ id: serverId, name, args }: UnknownObject, events: ModelEvent[]): void {
    const id = newId(serverId);
    events.push({
      type: "call.start",
      id,
      name: stringIn({ name }, "name") || unreadable("name", "a tool", undefined),
    });
    const text = typeof args === "string" ? args : JSON.stringify(objectIn({ args }, "args")); // some proxies send a text
    if (text === "" || text === "{}") unclosed = id;
    else events.push({ type: "call.delta", id, text }, { type: "call.end", id });
  }

  /** Ends a call without input, once it is certain that the response was not cut within it. */
  function endEmptyCall(events: ModelEvent[]): void {
    if (unclosed === undefined) return;
    events.push({ type: "call.delta", id: unclosed, text: "{}" }, { type: "call.end", id: unclosed });
    unclosed = undefined;
  }

  function end(): readonly ModelEvent[] {
    if (reason === "") return [];
    if (/^(MALFORMED|UNEXPECTED_TOOL_CALL)/.test(reason)) {
      throw new ModelError(`Cannot read the response of ${model}: the model wrote an invalid call (${reason})`, {
        recoverable: true,
      });
    }
    const mapped = finishReasonOf(reason);
    const finish = mapped === "stop" && ids.size > 0 ? "calls" : mapped;
    const ends: ModelEvent[] = [];
    if (mapped === "stop") endEmptyCall(ends);
    if (streaming) { // the response ended within it: it stays open, with its input so far
      const id = newId(streaming.id);
      const text = JSON.stringify(streaming.input).slice(0, -1);
      ends.push({ type: "call.start", id, name: streaming.name }, { type: "call.delta", id, text });
    }
    const reported = builtIn.report({ groundingMetadata: grounding, urlContextMetadata });
    const notes = isObject(grounding) ? [...sourcesOf(grounding), noteEvent(model, { grounding })] : [];
    const parts = [...ends, ...reported, ...notes, ...logprobsEvents(tokens), ...refusal ? [refusal] : []];
    return [...parts, {
      type: "finish",
      reason: finish,
      ...(usage && { usage: usageOf(usage) }),
      ...idField(responseId),
    }];
  }

  return { parse, end };
}

/** Returns the pages and documents that ground the answer. */
function sourcesOf({ groundingChunks }: UnknownObject): readonly ModelEvent[] {
  const chunks = Array.isArray(groundingChunks) ? groundingChunks.filter(isObject) : [];
  return chunks.flatMap(({ web, retrievedContext }) => {
    const found = isObject(web) ? web : retrievedContext;
    return isObject(found) ? [sourceEvent({ url: found.uri, title: found.title, text: found.text })] : [];
  });
}

/** Returns the tokens of a chunk. */
function logprobsOf(result: unknown): readonly TokenLogprob[] {
  const { chosenCandidates, topCandidates }: UnknownObject = Object(result);
  return tokensOf(chosenCandidates, "logProbability").map((token, index) => {
    const top = tokensOf(Object(topCandidates)[index]?.candidates, "logProbability");
    return top.length > 0 ? { ...token, top } : token;
  });
}

/** Adds up the counts: the API counts reasoning apart from the output, and results of its own tools apart from the input. */
function usageOf(counts: UnknownObject): Usage {
  const reasoning = numberIn(counts, "thoughtsTokenCount");
  return addUsage(noUsage, {
    input: numberIn(counts, "promptTokenCount") + numberIn(counts, "toolUsePromptTokenCount"),
    output: numberIn(counts, "candidatesTokenCount") + reasoning,
    cached: numberIn(counts, "cachedContentTokenCount"),
    reasoning,
  });
}
