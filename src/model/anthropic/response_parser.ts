/**
 * Parses streamed responses of the messages API: a sequence of blocks with start, delta and stop events.
 *
 * @module
 */
import type { ContextEdit, FinishReason } from "../../protocol/event.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/message.ts";
import { isObject, type UnknownObject } from "../../protocol/shape.ts";
import type { ModelEvent } from "../model.ts";
import type { ResponseParser } from "../provider.ts";
import { callEvent, noteEvent, refusalEvent, resultEvent, sourceEvent } from "../provider_note.ts";
import { idField, numberIn, objectIn, objectsIn, stringIn, unreadable, unreadWarnings } from "../response.ts";

/** A block that is being streamed. */
interface Block {
  readonly type: string;
  /** The id of a call. */
  readonly id: string;
  /** The input of a call, if the start event carried it. */
  input: UnknownObject | undefined;
  /** Whether a part of it has arrived. */
  hasInput: boolean;
  /** The signature of reasoning. */
  signature: string;
  /** The start of a block that has no event, such as one of a tool that the provider runs. */
  readonly other: UnknownObject | undefined;
  /** The input of such a block, as JSON text, and its further members. */
  json: string;
  readonly more: Record<string, unknown>;
  /** The citations of a text. */
  readonly citations: unknown[];
}

/** Matches the types of blocks that are sent back without being shown: those of tools that the provider runs, lists of them, and summaries. */
const silent = /^(compaction|mcp_tool_listing)$|_tool_use$|_tool_result$/;

/** Matches the types of deltas that can be read. */
const knownDeltas = /^(text|input_json|citations|thinking|signature|compaction)_delta$/;

/** The types of blocks that become text, reasoning or calls. */
const known = ["text", "thinking", "redacted_thinking", "tool_use"];

/** The edits of the context, by the types that the API reports. */
const editTypes: readonly (readonly [pattern: RegExp, type: ContextEdit["type"]])[] = [
  [/^clear_tool_uses_/, "tool_results"],
  [/^clear_thinking_/, "reasoning"],
];

const reasons = new Map<string, FinishReason>([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["tool_use", "calls"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "refusal"],
  // of proxies that pass on those of chat completions
  ["stop", "stop"],
  ["tool_calls", "calls"],
  ["length", "length"],
]);

/** A parser that knows whether the provider paused the response. */
export interface MessageParser extends ResponseParser {
  /** Whether the response ended with `pause_turn`: the provider continues it if it is sent back. */
  readonly isPaused: () => boolean;
}

/** Creates a parser for one response of `model`. */
export function responseParser(model: string): MessageParser {
  const blocks = new Map<unknown, Block>();
  /** The names of the tools that the provider runs, by the id of the call. */
  const names = new Map<unknown, string>();
  /** The id of the last call, if it has ended without input: also a response that reaches its limit ends its last block. */
  let unclosed: string | undefined;
  let unnamed = 0;
  let hasCalls = false;
  /** Whether the last block is reasoning without a signature. */
  let isUnsigned = false;
  const warn = unreadWarnings(model);
  let reason = "";
  let details: unknown;
  let counts: UnknownObject = {};
  let messageId: unknown;
  const edits: ContextEdit[] = [];

  function parse(frame: UnknownObject, events: ModelEvent[]): boolean {
    const { type, index } = frame;
    const block = blocks.get(index);
    const delta = type === "content_block_delta" || type === "message_delta" ? objectIn(frame, "delta") : {};
    if (type === "content_block_start" && frame.content_block) {
      if (block) close(index, block, events); // whose stop event is missing
      start(index, objectIn(frame, "content_block"), events);
    } else if (type === "content_block_delta") append(block ?? startOf(index, delta, events), delta, events);
    else if (type === "content_block_stop" && block) close(index, block, events);
    else if (type === "message_start") {
      const message = objectIn(frame, "message");
      count(message);
      messageId = message.id;
      for (const [at, content] of objectsIn(message, "content").entries()) { // calls of a program that continues
        close(`start ${at}`, start(`start ${at}`, content, events), events);
      }
    } else if (type === "message_delta") {
      count(frame);
      reason = stringIn(delta, "stop_reason") || reason;
      details = delta.stop_details ?? details;
      for (const edit of objectsIn(objectIn(frame, "context_management"), "applied_edits")) addEdit(edit, events);
    }
    return type === "message_stop";
  }

  function addEdit(edit: UnknownObject, events: ModelEvent[]): void {
    const kind = stringIn(edit, "type");
    const [, type] = editTypes.find(([pattern]) => pattern.test(kind)) ?? [];
    if (!type) return warn(`an edit of the context of type "${kind}"`, events);
    const count = numberIn(edit, type === "reasoning" ? "cleared_thinking_turns" : "cleared_tool_uses");
    edits.push({ type, tokens: numberIn(edit, "cleared_input_tokens"), count });
  }

  /** Begins the block of a delta whose start is missing. A call has no name then, and cannot be read. */
  function startOf(index: unknown, delta: UnknownObject, events: ModelEvent[]): Block {
    if (delta.partial_json !== undefined) {
      unreadable("content_block", "the start of a call before its input", undefined);
    }
    return start(index, { type: delta.thinking === undefined ? "text" : "thinking" }, events);
  }

  function start(index: unknown, content: UnknownObject, events: ModelEvent[]): Block {
    for (const [at, block] of blocks) if (block.type !== "tool_use") close(at, block, events); // whose stop event is missing
    endEmptyCall(events);
    if (isUnsigned && content.type === "thinking") events.push(noteEvent(model, {})); // another signature is not of both
    isUnsigned = false;
    const { input } = content;
    const type = stringIn(content, "type");
    const block: Block = {
      type,
      id: stringIn(content, "id") || `call_${unnamed++}`,
      input: isObject(input) && Object.keys(input).length > 0 ? input : undefined,
      hasInput: false,
      signature: "",
      other: known.includes(type) ? undefined : content,
      json: "",
      more: {},
      citations: type === "text" ? [...objectsIn(content, "citations")] : [],
    };
    blocks.set(index, block);
    if (type === "tool_use") {
      hasCalls = true;
      const name = stringIn(content, "name") || unreadable("name", "the name of a tool", undefined);
      const caller = objectIn(content, "caller");
      if ((caller.type ?? "direct") !== "direct") events.push(noteEvent(model, { callId: block.id, caller }));
      events.push({ type: "call.start", id: block.id, name });
      if (typeof input === "string") append(block, { partial_json: input }, events); // some proxies send its JSON text
      else objectIn(content, "input");
    } else if (type === "redacted_thinking") {
      events.push({ type: "reasoning", text: "", meta: { redacted: stringIn(content, "data") } });
    } else if (!block.other) append(block, content, events);
    else if (!silent.test(type)) warn(`a block of type "${type}"`, events);
    return block;
  }

  function append(block: Block, delta: UnknownObject, events: ModelEvent[]): void {
    const type = stringIn(delta, "type");
    if (type.endsWith("_delta") && !knownDeltas.test(type)) warn(`a delta of type "${type}"`, events);
    const input = stringIn(delta, "partial_json");
    if (delta.citation) block.citations.push(delta.citation);
    if (block.other) {
      block.json += input;
      for (const name of ["content", "encrypted_content"]) { // of a compaction
        if (delta[name]) block.more[name] = stringIn(block.more, name) + stringIn(delta, name);
      }
      return;
    }
    const signature = stringIn(delta, "signature");
    if (signature !== block.signature) block.signature += signature; // some proxies repeat that of the start
    const text = stringIn(delta, "text");
    const thinking = stringIn(delta, "thinking");
    if (text !== "") events.push({ type: "text", text });
    if (thinking !== "") events.push({ type: "reasoning", text: thinking });
    if (block.type === "tool_use" && input !== "") {
      block.input = undefined;
      block.hasInput = true;
      events.push({ type: "call.delta", id: block.id, text: input });
    }
  }

  function close(index: unknown, block: Block, events: ModelEvent[]): void {
    const { type, id, input, hasInput, signature, other, json, more, citations } = block;
    blocks.delete(index);
    if (type === "compaction" && (more.content ?? other?.content)) edits.push({ type }); // without content, it failed
    if (type === "tool_use" && !input && !hasInput) unclosed = id;
    else if (type === "tool_use") events.push({ type: "call.end", id, ...(input && { input }) });
    else if (signature !== "" && type !== "text") events.push({ type: "reasoning", text: "", meta: { signature } });
    else if (other) events.push(builtInEvent(model, parseBlock({ ...other, ...more }, json), names));
    else if (citations.length > 0 || signature !== "") {
      for (const citation of citations) if (isObject(citation)) events.push(sourceOf(citation));
      const more = { ...(citations.length > 0 && { citations }), ...(signature !== "" && { signature }) };
      events.push(noteEvent(model, { text: more }));
    }
    isUnsigned = type === "thinking" && signature === "";
  }

  /** Ends a call without input, once it is certain that the response was not cut within it. */
  function endEmptyCall(events: ModelEvent[]): void {
    if (unclosed !== undefined) events.push({ type: "call.end", id: unclosed });
    unclosed = undefined;
  }

  /** Merges counts: later ones are totals, and may leave fields out, or be 0 or null there. */
  function count(from: UnknownObject): void {
    const entries = Object.entries(objectIn(from, "usage")).filter(([, value]) => value);
    counts = { ...counts, ...Object.fromEntries(entries) };
  }

  function end(complete: boolean): readonly ModelEvent[] {
    if (reason === "" && !complete) return [];
    reason ||= hasCalls ? "tool_use" : "end_turn"; // some servers end a response without a reason
    const events: ModelEvent[] = [];
    const mapped = reasons.get(reason) ?? "other";
    const isWhole = reason !== "stop_sequence" && (mapped === "stop" || mapped === "calls");
    for (const [index, block] of blocks) { // whose stop event is missing
      if (isWhole) endEmptyCall(events);
      if (isWhole || block.type !== "tool_use" || block.input) close(index, block, events);
    }
    if (isWhole) endEmptyCall(events);
    const isOpen = unclosed !== undefined || [...blocks.values()].some(({ type }) => type === "tool_use");
    const finish = mapped === "stop" && isOpen ? "other" : mapped; // a stop sequence within a call
    if (reason === "refusal") {
      const { explanation, category }: UnknownObject = isObject(details) ? details : {};
      events.push(refusalEvent(explanation, category));
    }
    const more = { ...idField(messageId), ...(edits.length > 0 && { edits }) };
    return [...events, { type: "finish", reason: finish, usage: usageOf(counts), ...more }];
  }

  return { parse, end, isPaused: () => reason === "pause_turn" };
}

/** Returns the event of a block of a tool that the provider runs: its call, its result, or a note of another block. */
function builtInEvent(model: string, block: UnknownObject, names: Map<unknown, string>): ModelEvent {
  const { id, name, input, server_name: server, tool_use_id: callId, content, is_error: isError, ...rest } = block;
  const type = stringIn(block, "type");
  if (type.endsWith("_tool_use")) {
    names.set(id, stringIn({ name }, "name"));
    return callEvent({ callId: id, name, server, input }, { model, block: rest });
  }
  if (!type.endsWith("_tool_result")) return noteEvent(model, { block });
  const failed = isError || (isObject(content) && stringIn(content, "type").endsWith("_error"));
  const known = names.get(callId) ?? type.slice(0, -"_tool_result".length); // a paused response made the call
  const result = { callId, name: known, status: failed ? "error" : "ok", output: content } as const;
  return resultEvent(result, { model, block: { ...rest, ...(isError !== undefined && { is_error: isError }) } });
}

/** Returns the event of a source: a page, or a document by its title. */
function sourceOf({ url, title, document_title, source, cited_text: text }: UnknownObject): ModelEvent {
  const isPage = typeof source === "string" && /^https?:/.test(source);
  return sourceEvent({ url: url ?? (isPage ? source : undefined), title: title ?? document_title, text });
}

/** Returns a block with its streamed input. A response that was cut off leaves JSON that cannot be parsed. */
function parseBlock(block: UnknownObject, json: string): UnknownObject {
  try {
    return json === "" ? block : { ...block, input: JSON.parse(json) };
  } catch {
    return block;
  }
}

/** Adds up the counts: the API does not include in `input_tokens` those that its cache read or wrote. */
function usageOf(counts: UnknownObject): Usage {
  const { iterations, ...rest } = counts;
  // with a compaction, the counts of the response are those of its last iteration
  if (Array.isArray(iterations) && iterations.length > 0) {
    const all = objectsIn(counts, "iterations").map(usageOf).reduce(addUsage, noUsage);
    const { reasoning = 0 } = all.reasoning === undefined ? usageOf(rest) : all;
    return addUsage(noUsage, { ...all, reasoning });
  }
  const cached = numberIn(counts, "cache_read_input_tokens");
  const cacheWrite = numberIn(counts, "cache_creation_input_tokens");
  return addUsage(noUsage, {
    input: numberIn(counts, "input_tokens") + cached + cacheWrite,
    output: numberIn(counts, "output_tokens"),
    cached,
    cacheWrite,
    reasoning: numberIn(objectIn(counts, "output_tokens_details"), "thinking_tokens"),
  });
}
