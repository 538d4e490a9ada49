/**
 * Parses the events of OpenAI's Responses API: output items, each with deltas between its `added` and `done` event.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/response_event.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/message.ts";
import type { TokenLogprob } from "../../protocol/part.ts";
import { isObject, numberOrZero, stringOrEmpty, type UnknownObject } from "../../protocol/unknown_json.ts";
import type { ModelEvent } from "../model.ts";
import type { ResponseParser } from "../provider.ts";
import type { ProviderErrors } from "../provider_error.ts";
import { logprobsEvents, noteEvent, refusalEvent, sourceEvent, tokensOf } from "../provider_note.ts";
import { numberIn, objectIn } from "../response_members.ts";
import { builtInEvents, questionCall } from "./built_in_tools.ts";

/** An output item that is being streamed. */
interface OpenItem {
  readonly type: unknown;
  /** The id of a call. */
  readonly id: string;
  /** Whether a delta has arrived. */
  hasDelta: boolean;
  /** The annotations that have arrived: some servers leave them out of the complete item. */
  readonly annotations: UnknownObject[];
}

const incompleteReasons = new Map<unknown, FinishReason>([
  ["max_output_tokens", "length"],
  ["content_filter", "filter"],
]);

/** Creates a parser for one response of `model`. */
export function responseParser(model: string, errors: ProviderErrors): ResponseParser {
  const open = new Map<unknown, OpenItem>();
  let calls = 0;
  /** The ids of calls whose item has ended, and that are not certain to be complete. */
  const unclosed: string[] = [];
  /** Whether an item says that it is incomplete. */
  let wasCut = false;
  /** Whether the response has ended with all of its items. */
  let isComplete = false;
  let refusal = "";
  const tokens: TokenLogprob[] = [];
  let finish: Extract<ModelEvent, { type: "finish" }> | undefined;

  function parse(frame: UnknownObject, events: ModelEvent[]): boolean {
    const { type, output_index: index, delta } = frame;
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        append(stringOrEmpty(type), index, stringOrEmpty(delta), events);
        return false;
      case "response.reasoning_summary_part.added":
        if (numberOrZero(frame.summary_index) > 0) events.push({ type: "reasoning", text: "\n\n" });
        return false;
      case "response.function_call_arguments.delta":
        appendInput(index, stringOrEmpty(delta), events);
        return false;
      case "response.output_text.annotation.added":
        if (isObject(frame.annotation)) open.get(index)?.annotations.push(frame.annotation);
        return false;
      case "response.output_item.added":
        if (isObject(frame.item)) start(index, frame.item, events);
        return false;
      case "response.output_item.done":
        if (isObject(frame.item)) close(index, frame.item, events);
        return false;
      default:
        return isObject(frame.response) && isLast(stringOrEmpty(type), frame.response);
    }
  }

  function append(type: string, index: unknown, text: string, events: ModelEvent[]): void {
    if (type.includes("refusal")) refusal += text;
    if (text === "") return;
    const item = open.get(index);
    if (item) item.hasDelta = true;
    events.push({ type: type.includes("reasoning") ? "reasoning" : "text", text });
  }

  function appendInput(index: unknown, text: string, events: ModelEvent[]): void {
    const item = open.get(index);
    if (!item || text === "") return;
    item.hasDelta = true;
    events.push({ type: "call.delta", id: item.id, text });
  }

  function start(index: unknown, item: UnknownObject, events: ModelEvent[]): void {
    const { type, call_id: callId, id, name, phase } = item;
    if (open.has(index)) return;
    if (!wasCut) endUnclosed(events); // the provider has gone on
    const isCall = type === "function_call";
    const opened = {
      type,
      id: stringOrEmpty(callId) || stringOrEmpty(id) || `call_${calls}`,
      hasDelta: false,
      annotations: [],
    };
    open.set(index, opened);
    if (isCall) {
      calls++;
      events.push({ type: "call.start", id: opened.id, name: stringOrEmpty(name) });
    } else if (type === "message" && phase) events.push(noteEvent(model, { phase }));
  }

  /** Ends an item. Items other than messages and calls are noted, so that they can be sent back. */
  function close(index: unknown, item: UnknownObject, events: ModelEvent[]): void {
    start(index, item, events); // some servers send no `added` event
    const opened = open.get(index);
    open.delete(index);
    if (!opened) return;
    if (item.type === "function_call") {
      const input = stringOrEmpty(item.arguments);
      if (!opened.hasDelta && input !== "") events.push({ type: "call.delta", id: opened.id, text: input });
      wasCut ||= item.status === "incomplete";
      unclosed.push(opened.id);
      if (item.status === "completed" || (!wasCut && (opened.hasDelta || input !== ""))) endUnclosed(events);
    } else if (item.type !== "message") {
      events.push(...builtInEvents({ model }, item) ?? [noteEvent(model, { item })]);
      if (item.type === "mcp_approval_request") ask(item, events);
    } else {
      if (!opened.hasDelta) events.push(...contentOf(item));
      for (const part of partsOf(item)) {
        if (!opened.hasDelta) refusal += stringOrEmpty(part.refusal);
        for (const token of tokensOf(part.logprobs)) tokens.push(token);
      }
      events.push(...sourcesOf(item, opened.annotations));
    }
  }

  function endUnclosed(events: ModelEvent[]): void {
    for (const id of unclosed.splice(0)) events.push({ type: "call.end", id });
  }

  /** Adds the call that a question asks about. The note that precedes it keeps the question. */
  function ask(question: UnknownObject, events: ModelEvent[]): void {
    const { id, name, input } = questionCall(question);
    calls++;
    events.push({ type: "call.start", id, name }, { type: "call.end", id, input });
  }

  /** Whether an event ends the response. Throws if the response failed. */
  function isLast(type: string, response: UnknownObject): boolean {
    if (type === "response.failed") throw errors.fromBody({ error: response.error ?? "the response failed" });
    if (type !== "response.completed" && type !== "response.incomplete") return false;
    const { incomplete_details: details, usage } = response;
    const complete: FinishReason = refusal !== "" ? "refusal" : wasCut ? "other" : calls > 0 ? "calls" : "stop";
    isComplete = type === "response.completed" && !wasCut;
    const reason = type === "response.completed"
      ? complete
      : incompleteReasons.get(isObject(details) && details.reason) ?? "other";
    finish = { type: "finish", reason, ...(isObject(usage) && { usage: usageOf(usage) }) };
    return true;
  }

  function end(): readonly ModelEvent[] {
    if (!finish) return [];
    for (const { type, id } of open.values()) if (type === "function_call") unclosed.push(id);
    const ends: ModelEvent[] = [];
    if (isComplete) endUnclosed(ends); // in a response that was cut, they stay open
    return [...ends, ...logprobsEvents(tokens), ...refusal === "" ? [] : [refusalEvent(refusal)], finish];
  }

  return { parse, end, readsAll: () => refusal !== "" };
}

/** Returns the text of a message that came without deltas. */
function contentOf(item: UnknownObject): readonly ModelEvent[] {
  const text = partsOf(item).map((part) => stringOrEmpty(part.text) || stringOrEmpty(part.refusal)).join("");
  return text === "" ? [] : [{ type: "text", text }];
}

function partsOf({ content }: UnknownObject): readonly UnknownObject[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

/** Returns the pages and files that a message cites. */
function sourcesOf(item: UnknownObject, streamed: readonly UnknownObject[]): readonly ModelEvent[] {
  const whole = partsOf(item).flatMap((part) =>
    Array.isArray(part.annotations) ? part.annotations.filter(isObject) : []
  );
  return (whole.length > 0 ? whole : streamed).flatMap(({ type, url, title, filename }) =>
    /_citation$/.test(stringOrEmpty(type)) ? [sourceEvent({ url, title: title ?? filename })] : []
  );
}

function usageOf(counts: UnknownObject): Usage {
  const read = objectIn(counts, "input_tokens_details");
  return addUsage(noUsage, {
    input: numberIn(counts, "input_tokens"),
    output: numberIn(counts, "output_tokens"),
    cached: numberIn(read, "cached_tokens"),
    cacheWrite: numberIn(read, "cache_write_tokens"),
    reasoning: numberIn(objectIn(counts, "output_tokens_details"), "reasoning_tokens"),
  });
}
