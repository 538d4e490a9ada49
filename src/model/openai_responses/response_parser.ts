/**
 * Parses the events of OpenAI's Responses API: output items, each with deltas between its `added` and `done` event.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/response_event.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/message.ts";
import type { TokenLogprob } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/unknown_json.ts";
import { ModelError, type ModelEvent } from "../model.ts";
import type { ResponseParser } from "../provider.ts";
import type { ProviderErrors } from "../provider_error.ts";
import { logprobsEvents, noteEvent, refusalEvent, sourceEvent, tokensOf } from "../provider_note.ts";
import { numberIn, objectIn, objectsIn, stringIn } from "../response_members.ts";
import { builtInEvents, questionCall } from "./built_in_tools.ts";

/** An output item that is being streamed. */
interface OpenItem {
  readonly type: unknown;
  /** The id of a call. */
  readonly id: string;
  /** The input of a call in its first event: some servers send it nowhere else. */
  readonly input: string;
  /** Whether a delta has arrived. */
  hasDelta: boolean;
  /** The annotations that have arrived: some servers leave them out of the complete item. */
  readonly annotations: UnknownObject[];
}

/** Matches the types of calls that a client must run, unless the provider sends their output. */
const clientCalls = /^(local_shell|shell|apply_patch|custom_tool|computer)_call$/;

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
  /** The places of the texts that have been streamed, and the indexes and ids of the items. */
  const streamed = new Set<string>();
  const seen = new Set<unknown>();
  /** The calls that a client must run, by their ids, with their types. */
  const unanswered = new Map<unknown, string>();
  let finish: Extract<ModelEvent, { type: "finish" }> | undefined;

  function parse(frame: UnknownObject, events: ModelEvent[]): boolean {
    const { output_index: index } = frame;
    const type = stringIn(frame, "type");
    switch (type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        append(frame, stringIn(frame, "delta"), events);
        return false;
      case "response.output_text.done":
      case "response.refusal.done":
      case "response.reasoning_summary_text.done":
      case "response.reasoning_text.done":
        if (!streamed.has(placeOf(frame))) {
          append(frame, stringIn(frame, type.includes("refusal") ? "refusal" : "text"), events);
        }
        return false;
      case "response.reasoning_summary_part.added":
        if (numberIn(frame, "summary_index") > 0) events.push({ type: "reasoning", text: "\n\n" });
        return false;
      case "response.function_call_arguments.delta":
        appendInput(index, stringIn(frame, "delta"), events);
        return false;
      case "response.function_call_arguments.done":
        if (open.get(index)?.hasDelta === false) appendInput(index, inputIn(frame), events);
        return false;
      case "response.output_text.annotation.added":
        if (isObject(frame.annotation)) open.get(index)?.annotations.push(frame.annotation);
        return false;
      case "response.output_item.added":
        if (frame.item) start(index, objectIn(frame, "item"), events);
        return false;
      case "response.output_item.done":
        if (frame.item) close(index, objectIn(frame, "item"), events);
        return false;
      default:
        return isObject(frame.response) && isLast(type, frame.response, events);
    }
  }

  /** Adds a piece of text, or a whole text that came without pieces. */
  function append(frame: UnknownObject, text: string, events: ModelEvent[]): void {
    const type = stringIn(frame, "type");
    if (type.includes("refusal")) refusal += text;
    if (text === "") return;
    streamed.add(placeOf(frame));
    if (frame.content_index === undefined) streamed.add(`all ${frame.output_index}`); // of a server that does not number the parts
    const item = open.get(frame.output_index);
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
    const { type, phase } = item;
    if (open.has(index)) return;
    if (!wasCut) endUnclosed(events); // the provider has gone on
    const isCall = type === "function_call";
    const opened = {
      type,
      id: stringIn(item, "call_id") || stringIn(item, "id") || `call_${calls}`,
      input: isCall ? inputIn(item) : "",
      hasDelta: false,
      annotations: [],
    };
    open.set(index, opened);
    seen.add(index).add(item.id ?? opened.id);
    if (isCall) {
      calls++;
      events.push({ type: "call.start", id: opened.id, name: stringIn(item, "name") });
    } else if (type === "message" && phase) events.push(noteEvent(model, { phase }));
  }

  /** Ends an item. Items other than messages and calls are noted, so that they can be sent back. */
  function close(index: unknown, item: UnknownObject, events: ModelEvent[]): void {
    start(index, item, events); // some servers send no `added` event
    const opened = open.get(index);
    open.delete(index);
    if (!opened) return;
    if (item.type === "function_call") {
      const input = inputIn(item) || opened.input;
      if (!opened.hasDelta && input !== "") events.push({ type: "call.delta", id: opened.id, text: input });
      wasCut ||= item.status === "incomplete";
      const { namespace, caller } = item;
      if (namespace ?? caller) events.push(noteEvent(model, { call: { namespace, caller } }));
      unclosed.push(opened.id);
      if (item.status === "completed" || (!wasCut && (opened.hasDelta || input !== ""))) endUnclosed(events);
    } else if (item.type !== "message") {
      events.push(...builtInEvents({ model }, item) ?? [noteEvent(model, { item })]);
      if (item.type === "mcp_approval_request") ask(item, events);
      if (clientCalls.test(stringIn(item, "type"))) unanswered.set(item.call_id, stringIn(item, "type"));
      else if (/_output$/.test(stringIn(item, "type"))) unanswered.delete(item.call_id); // the provider has run the call
    } else {
      for (const [content_index, part] of objectsIn(item, "content").entries()) {
        const type = stringIn(part, "type");
        const frame = { type, output_index: index, content_index };
        const isStreamed = streamed.has(placeOf(frame)) || streamed.has(`all ${index}`);
        if (!isStreamed) append(frame, stringIn(part, "text") || stringIn(part, "refusal"), events);
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
  function isLast(type: string, response: UnknownObject, events: ModelEvent[]): boolean {
    if (type === "response.failed") throw errors.fromBody({ error: response.error ?? "the response failed" });
    if (type !== "response.completed" && type !== "response.incomplete") return false;
    for (const [index, item] of objectsIn(response, "output").entries()) {
      const isNew = ![index, item.id, item.call_id].some((key) => key !== undefined && seen.has(key)) &&
        !seen.has(undefined);
      if (isNew) close(index, item, events); // some servers send items only here
    }
    const [clientCall] = unanswered.values();
    if (clientCall) {
      throw new ModelError(
        `Cannot answer a call of ${model}: it is of type "${clientCall}", which only a client can run`,
      );
    }
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
    const ends: ModelEvent[] = [];
    for (const { type, id, input, hasDelta } of open.values()) {
      if (type !== "function_call") continue;
      if (!hasDelta && input !== "") ends.push({ type: "call.delta", id, text: input });
      unclosed.push(id);
    }
    if (isComplete) endUnclosed(ends); // in a response that was cut, they stay open
    return [...ends, ...logprobsEvents(tokens), ...refusal === "" ? [] : [refusalEvent(refusal)], finish];
  }

  return { parse, end, readsAll: () => refusal !== "" };
}

/** Returns the place of a text, by its kind, its item and its number. */
function placeOf({ type, output_index, content_index, summary_index }: UnknownObject): string {
  const kind = /refusal|summary|reasoning/.exec(`${type}`)?.[0] ?? "text";
  return `${kind} ${output_index} ${content_index ?? summary_index ?? 0}`;
}

/** Returns the input of a call as JSON text. Some servers send an object. */
function inputIn(item: UnknownObject): string {
  const { arguments: input } = item;
  return isObject(input) ? JSON.stringify(input) : stringIn(item, "arguments");
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
    /_citation$/.test(`${type}`) ? [sourceEvent({ url, title: title ?? filename })] : []
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
