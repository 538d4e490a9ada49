/**
 * Parses the events of OpenAI's Responses API: output items, each with deltas between its `added` and `done` event.
 *
 * @module
 */
import type { ContextEdit, FinishReason } from "../../protocol/event.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/message.ts";
import type { TokenLogprob } from "../../protocol/part.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import { ModelError, type ModelEvent } from "../model.ts";
import type { ResponseParser } from "../provider.ts";
import type { ProviderErrors } from "../provider_error.ts";
import { logprobsEvents, noteEvent, refusalEvent, sourceEvent, tokensOf } from "../provider_note.ts";
import { idField, numberIn, objectIn, objectsIn, stringIn, unreadWarnings } from "../response.ts";
import { builtInEvents, questionCall } from "./built_in_tools.ts";

/** An output item. Servers send its content in deltas, in events that end them, in the item itself, or only in the response that ends the stream. */
interface Item {
  readonly index: unknown;
  readonly type: string;
  /** The item as it was added. */
  readonly added: UnknownObject;
  /** The id of a call. */
  id: string;
  /** The name of a call. It is empty until the call begins. */
  name: string;
  /** The input of a call that arrived before its name. */
  bufferedInput: string;
  /** The texts that have arrived, by their place in the item. */
  readonly texts: Set<string>;
  /** The annotations that have arrived: some servers leave them out of the complete item. */
  readonly annotations: UnknownObject[];
  isClosed: boolean;
  /** Whether the sources and log probabilities, or the note of the item, have been returned. */
  isNoted: boolean;
  /** Whether the response that ends the stream contains it. */
  isFinal: boolean;
}

const incompleteReasons = new Map<unknown, FinishReason>([
  ["max_output_tokens", "length"],
  ["content_filter", "filter"],
]);

/** Matches events of texts: of their deltas, and of their ends, which contain the whole text. */
const textEvent = /^response\.(output_text|refusal|reasoning_summary_text|reasoning_text)\.(delta|done)$/;

/** The kinds of texts, by the types of their parts. */
const partKinds = new Map<unknown, string>([
  ["output_text", "output_text"],
  ["text", "output_text"],
  ["refusal", "refusal"],
  ["reasoning_text", "reasoning_text"],
  ["summary_text", "reasoning_summary_text"],
]);

/** The place of the input among the texts of a call. */
const input = "input";

/** The types of items that are sent back without being shown. */
const silent =
  /^(compaction|mcp_list_tools|mcp_approval_request|image_generation_call|(tool_search|shell)_(call|output|call_output))$/;

/** Creates a parser for one response of `model`. */
export function responseParser(model: string, errors: ProviderErrors): ResponseParser {
  const items: Item[] = [];
  let calls = 0;
  /** The calls whose item has ended, and that are not certain to be complete. */
  const unclosed: Item[] = [];
  /** The types of calls that neither the engine nor the provider has run, by their id. */
  const pending = new Map<unknown, string>();
  /** Whether an item says that it is incomplete. */
  let wasCut = false;
  /** Whether the response has ended with all of its items. */
  let isComplete = false;
  let refusal = "";
  const tokens: TokenLogprob[] = [];
  const edits: ContextEdit[] = [];
  const warn = unreadWarnings(model);
  let finish: Extract<ModelEvent, { type: "finish" }> | undefined;

  function parse(frame: UnknownObject, events: ModelEvent[]): boolean {
    const type = stringIn(frame, "type");
    const [, kind = "", step] = textEvent.exec(type) ?? [];
    if (step === "delta") append(frame, kind, stringIn(frame, "delta"), events);
    else if (step === "done") add(frame, kind, stringIn(frame, kind === "refusal" ? kind : "text"), events);
    switch (type) {
      case "response.reasoning_summary_part.added":
        if (numberIn(frame, "summary_index") > 0) events.push({ type: "reasoning", text: "\n\n" });
        return false;
      case "response.content_part.done":
      case "response.reasoning_summary_part.done":
        endPart(frame, objectIn(frame, "part"), events);
        return false;
      case "response.function_call_arguments.delta":
        appendInput(itemAt(frame, "function_call", events), inputIn(frame, "delta"), events);
        return false;
      case "response.function_call_arguments.done": {
        const call = itemAt(frame, "function_call", events);
        startCall(call, frame, events);
        if (!call.texts.has(input)) appendInput(call, inputIn(frame, "arguments"), events);
        return false;
      }
      case "response.output_text.annotation.added":
        itemAt(frame, "message", events).annotations.push(objectIn(frame, "annotation"));
        return false;
      case "response.output_item.added":
      case "response.output_item.done": {
        const item = objectIn(frame, "item");
        if (item.type) (type.endsWith("added") ? start : close)(frame.output_index, item, events);
        return false;
      }
      default:
        return isObject(frame.response) && isLast(type, frame.response, events);
    }
  }

  /** Returns the open item that an event is about. Some servers do not announce it. */
  function itemAt({ output_index: index, item_id: id }: UnknownObject, type: string, events: ModelEvent[]): Item {
    return openItem(index, { type, id }) ?? start(index, { type, id }, events);
  }

  function openItem(index: unknown, { type, id }: UnknownObject): Item | undefined {
    const openItems = items.filter((item) => !item.isClosed && item.type === type);
    return openItems.find(({ added }) => id && added.id === id) ?? openItems.find((item) => item.index === index);
  }

  /** Appends a text to the item of an event. */
  function append(frame: UnknownObject, kind: string, text: string, events: ModelEvent[]): void {
    const item = itemAt(frame, kind.startsWith("reasoning") ? "reasoning" : "message", events);
    appendText(item, placeOf(kind, frame), { kind, text }, events);
  }

  /** Adds the text of a part that has ended, if neither its deltas nor its own end have arrived. */
  function endPart(frame: UnknownObject, part: UnknownObject, events: ModelEvent[]): void {
    const kind = partKinds.get(part.type);
    const text = kind === undefined ? "" : stringIn(part, kind === "refusal" ? kind : "text");
    if (kind !== undefined && text !== "") add(frame, kind, text, events);
  }

  /** Adds a whole text, unless its deltas have arrived. */
  function add(frame: UnknownObject, kind: string, text: string, events: ModelEvent[]): void {
    const item = itemAt(frame, kind.startsWith("reasoning") ? "reasoning" : "message", events);
    if (!item.texts.has(placeOf(kind, frame))) appendText(item, placeOf(kind, frame), { kind, text }, events);
  }

  function appendText(
    item: Item,
    place: string,
    { kind, text }: { readonly kind: string; readonly text: string },
    events: ModelEvent[],
  ): void {
    if (text === "") return;
    if (kind === "refusal") refusal += text;
    item.texts.add(place);
    events.push({ type: item.type === "reasoning" ? "reasoning" : "text", text });
  }

  function appendInput(call: Item, text: string, events: ModelEvent[]): void {
    if (text === "") return;
    call.texts.add(input);
    if (call.name === "") call.bufferedInput += text;
    else events.push({ type: "call.delta", id: call.id, text });
  }

  function start(index: unknown, added: UnknownObject, events: ModelEvent[]): Item {
    const type = stringIn(added, "type");
    const opened = openItem(index, added);
    if (opened) return opened;
    if (!wasCut) endUnclosed(events, ({ texts }) => texts.has(input)); // the provider has gone on
    const item: Item = {
      ...{ index, type, added, id: "", name: "", bufferedInput: "", texts: new Set<string>(), annotations: [] },
      ...{ isClosed: false, isNoted: false, isFinal: false },
    };
    items.push(item);
    if (type === "function_call") startCall(item, added, events);
    else if (type === "message" && added.phase) events.push(noteEvent(model, { phase: added.phase }));
    return item;
  }

  /** Begins a call once its name is known. What it must carry back is noted. */
  function startCall(call: Item, fields: UnknownObject, events: ModelEvent[]): void {
    const name = stringIn(fields, "name");
    if (call.name !== "" || name === "") return;
    call.name = name;
    call.id = stringIn(fields, "call_id") || stringIn(call.added, "call_id") || stringIn(fields, "id") ||
      `call_${calls}`;
    calls++;
    events.push({ type: "call.start", id: call.id, name });
    const { bufferedInput } = call;
    if (bufferedInput !== "") events.push({ type: "call.delta", id: call.id, text: bufferedInput });
  }

  function close(index: unknown, item: UnknownObject, events: ModelEvent[]): void {
    const repeated = items.find(({ isClosed, type, added }) =>
      isClosed && type === item.type && item.id && added.id === item.id
    );
    if (!repeated) fill(start(index, item, events), item, events);
  }

  /** Adds the content of a whole item that has not arrived yet. */
  function fill(item: Item, complete: UnknownObject, events: ModelEvent[]): void {
    if (item.type === "function_call") fillCall(item, complete, events);
    else if (item.type === "message") fillMessage(item, complete, events);
    else if (!item.isNoted) {
      item.isNoted = true;
      if (item.type === "reasoning") fillReasoning(item, complete, events);
      else addOther(item.type, complete, events);
    }
    item.isClosed = true;
  }

  function fillCall(call: Item, complete: UnknownObject, events: ModelEvent[]): void {
    startCall(call, complete, events);
    if (call.name === "") {
      throw new ModelError(`Cannot read the response of ${model}: expected a \`name\` in each \`function_call\``);
    }
    if (!call.texts.has(input)) {
      appendInput(call, inputIn(complete, "arguments") || inputIn(call.added, "arguments"), events);
    }
    carry(call, complete, events);
    if (call.isClosed) return;
    wasCut ||= complete.status === "incomplete";
    unclosed.push(call);
    if (call.texts.has(input) && (complete.status === "completed" || !wasCut)) {
      endUnclosed(events, (each) => each === call);
    }
  }

  /** Notes the members of a call that the next request must contain. */
  function carry(call: Item, complete: UnknownObject, events: ModelEvent[]): void {
    const { namespace, caller } = { ...call.added, ...complete };
    if (!call.isNoted && (namespace || caller)) {
      call.isNoted = true;
      const more = { ...namespace ? { namespace } : {}, ...caller ? { caller } : {} };
      events.push(noteEvent(model, { callId: call.id, more }));
    }
  }

  function fillMessage(message: Item, complete: UnknownObject, events: ModelEvent[]): void {
    const parts = objectsIn(complete, "content");
    for (const [at, part] of parts.entries()) {
      const kind = stringIn(part, "type");
      if (kind === "output_text" || kind === "text" || kind === "refusal") {
        const text = stringIn(part, kind === "refusal" ? kind : "text");
        if (!message.texts.has(`content ${at}`)) appendText(message, `content ${at}`, { kind, text }, events);
      } else warn(`content of type "${kind}"`, events);
    }
    const cited = parts.flatMap((part) => objectsIn(part, "annotations"));
    const logprobs = parts.flatMap((part) => tokensOf(part.logprobs));
    const annotations = cited.length > 0 ? cited : message.annotations;
    if (message.isNoted || annotations.length + logprobs.length === 0) return;
    message.isNoted = true;
    for (const token of logprobs) tokens.push(token);
    for (const { type, url, title, filename, file_id: file } of annotations) {
      if (/_citation$|^file_path$/.test(String(type))) {
        events.push(sourceEvent({ url, title: title ?? filename ?? file }));
      } else if (type) warn(`an annotation of type "${type}"`, events);
    }
  }

  /** Adds reasoning that had no deltas. The item is noted, so that it can be sent back. */
  function fillReasoning(reasoning: Item, complete: UnknownObject, events: ModelEvent[]): void {
    for (const list of ["summary", "content"]) {
      for (const [at, part] of objectsIn(complete, list).entries()) {
        const text = stringIn(part, "text");
        const isNew = text !== "" && !reasoning.texts.has(`${list} ${at}`);
        if (isNew && reasoning.texts.size > 0) events.push({ type: "reasoning", text: "\n\n" });
        if (isNew) appendText(reasoning, `${list} ${at}`, { kind: "reasoning", text }, events);
      }
    }
    events.push(noteEvent(model, { item: complete }));
  }

  /** Adds an item of a tool. One of another kind is noted, so that it can be sent back. */
  function addOther(type: string, item: UnknownObject, events: ModelEvent[]): void {
    const builtIn = builtInEvents({ model }, item);
    events.push(...builtIn ?? [noteEvent(model, { item })]);
    if (type === "compaction") edits.push({ type });
    if (type === "mcp_approval_request") return ask(item, events);
    if (/_call$/.test(type) && !builtIn && item.call_id) pending.set(item.call_id, type);
    else if (type.endsWith("_output")) pending.delete(item.call_id);
    else if (!builtIn && !silent.test(type)) warn(`an item of type "${type}"`, events);
  }

  function endUnclosed(events: ModelEvent[], isCertain: (call: Item) => boolean): void {
    for (const call of unclosed.splice(0)) {
      if (isCertain(call)) events.push({ type: "call.end", id: call.id });
      else unclosed.push(call);
    }
  }

  /** Adds the call that a question asks about. The note that precedes it keeps the question. */
  function ask(question: UnknownObject, events: ModelEvent[]): void {
    const { id, name, input } = questionCall(question);
    calls++;
    events.push({ type: "call.start", id, name }, { type: "call.end", id, input });
  }

  /** Whether an event ends the response. Throws if the response failed, or contains a call that only a client can run. */
  function isLast(type: string, response: UnknownObject, events: ModelEvent[]): boolean {
    const [, event] = /^response\.(completed|incomplete|failed|cancelled|done)$/.exec(type) ?? [];
    if (!event) return false;
    const status = event === "completed" || event === "done" ? stringIn(response, "status") || event : event;
    if (response.error || status === "failed" || status === "cancelled") {
      throw errors.fromBody({
        error: response.error || `the response ${status === "failed" ? status : "was cancelled"}`,
      });
    }
    addMissing(objectsIn(response, "output"), events);
    if (pending.size > 0) {
      throw new ModelError(
        `Cannot answer a call of ${model}: it is of type "${[...pending.values()][0]}", which only a client can run`,
      );
    }
    const complete: FinishReason = refusal !== "" ? "refusal" : wasCut ? "other" : calls > 0 ? "calls" : "stop";
    isComplete = status !== "incomplete" && !wasCut;
    const reason = status === "incomplete"
      ? incompleteReasons.get(objectIn(response, "incomplete_details").reason) ?? "other"
      : complete;
    const { usage } = response;
    const counts = usage ? { usage: usageOf(objectIn(response, "usage")) } : {};
    finish = { type: "finish", reason, ...counts, ...idField(response.id), ...(edits.length > 0 && { edits }) };
    return true;
  }

  /** Adds what only the response at the end contains. Items are found by their id, or by their order among those of their type. */
  function addMissing(output: readonly UnknownObject[], events: ModelEvent[]): void {
    for (const [index, complete] of output.entries()) {
      const known = items.filter(({ isFinal, type }) => !isFinal && type === complete.type);
      const ids = ({ id, added }: Item) =>
        (id !== "" && id === complete.call_id) || (added.id && added.id === complete.id);
      const item = known.find(ids) ?? known[0] ?? start(index, complete, events);
      fill(item, complete, events);
      item.isFinal = true;
    }
    for (const item of items) {
      if (item.isClosed || item.type === "reasoning") continue;
      if (item.type !== "function_call") fill(item, item.added, events);
      else if (item.name !== "") {
        carry(item, item.added, events);
        unclosed.push(item);
      }
    }
  }

  function end(): readonly ModelEvent[] {
    if (!finish) return [];
    const ends: ModelEvent[] = [];
    // in a response that was cut, they stay open
    endUnclosed(ends, (call) => isComplete || (call.isClosed && call !== items.at(-1) && !wasCut));
    return [...ends, ...logprobsEvents(tokens), ...refusal === "" ? [] : [refusalEvent(refusal)], finish];
  }

  return { parse, end, readsAll: () => refusal !== "" };
}

/** Returns the place of a text in its item. */
function placeOf(kind: string, frame: UnknownObject): string {
  return kind === "reasoning_summary_text"
    ? `summary ${numberIn(frame, "summary_index")}`
    : `content ${numberIn(frame, "content_index")}`;
}

/** Returns the JSON text of an input. Some servers send an object. */
function inputIn(from: UnknownObject, name: string): string {
  return isObject(from[name]) ? JSON.stringify(from[name]) : stringIn(from, name);
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
