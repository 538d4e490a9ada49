/**
 * Parses streamed responses of the messages API: a sequence of blocks with start, delta and stop events.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/event.ts";
import type { Usage } from "../../protocol/message.ts";
import { type Fields, isFields, numberIn, textIn } from "../fields.ts";
import type { ModelEvent } from "../model.ts";
import type { ResponseParser } from "../provider.ts";

/** A block that is being streamed. */
interface Block {
  readonly type: string;
  /** The id of a call. */
  readonly id: string;
  /** The input of a call, if the start event carried it. */
  input: Fields | undefined;
  /** The signature of reasoning. */
  signature: string;
}

const reasons = new Map<string, FinishReason>([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["tool_use", "calls"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "filter"],
]);

/** Creates a parser for one response. */
export function responseParser(): ResponseParser {
  const blocks = new Map<unknown, Block>();
  let unnamed = 0;
  let reason = "";
  let counts: Fields = {};

  function parse({ type, index, message, content_block, delta, usage }: Fields, events: ModelEvent[]): boolean {
    const block = blocks.get(index);
    if (type === "content_block_start" && isFields(content_block)) start(index, content_block, events);
    else if (type === "content_block_delta" && block && isFields(delta)) append(block, delta, events);
    else if (type === "content_block_stop" && block) close(index, block, events);
    else if (type === "message_start" && isFields(message)) count(message.usage);
    else if (type === "message_delta") {
      count(usage);
      if (isFields(delta)) reason = textIn(delta.stop_reason) || reason;
    }
    return type === "message_stop";
  }

  function start(index: unknown, content: Fields, events: ModelEvent[]): void {
    const { type, id, name, input, data } = content;
    const block: Block = {
      type: textIn(type),
      id: textIn(id) || `call_${unnamed++}`,
      input: isFields(input) && Object.keys(input).length > 0 ? input : undefined,
      signature: "",
    };
    blocks.set(index, block);
    if (type === "tool_use") events.push({ type: "call.start", id: block.id, name: textIn(name) });
    else if (type === "redacted_thinking") {
      events.push({ type: "reasoning", text: "", meta: { redacted: textIn(data) } });
    } else append(block, content, events);
  }

  function append(
    block: Block,
    { text, thinking, signature, partial_json: input }: Fields,
    events: ModelEvent[],
  ): void {
    block.signature += textIn(signature);
    if (textIn(text) !== "") events.push({ type: "text", text: textIn(text) });
    if (textIn(thinking) !== "") events.push({ type: "reasoning", text: textIn(thinking) });
    if (block.type === "tool_use" && textIn(input) !== "") {
      block.input = undefined;
      events.push({ type: "call.delta", id: block.id, text: textIn(input) });
    }
  }

  function close(index: unknown, { type, id, input, signature }: Block, events: ModelEvent[]): void {
    blocks.delete(index);
    if (type === "tool_use") events.push({ type: "call.end", id, ...(input && { input }) });
    else if (signature !== "") events.push({ type: "reasoning", text: "", meta: { signature } });
  }

  /** Merges counts: later ones are totals, and may leave fields out. */
  function count(usage: unknown): void {
    if (isFields(usage)) counts = { ...counts, ...usage };
  }

  function end(): readonly ModelEvent[] {
    if (reason === "") return [];
    const events: ModelEvent[] = [];
    for (const [index, block] of blocks) close(index, block, events); // whose stop event is missing
    return [...events, { type: "finish", reason: reasons.get(reason) ?? "other", usage: usageOf(counts) }];
  }

  return { parse, end };
}

/** Adds up the counts: the API does not include cached tokens in `input_tokens`. */
function usageOf(
  { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens }: Fields,
): Usage {
  const cached = numberIn(cache_read_input_tokens);
  return {
    input: numberIn(input_tokens) + cached + numberIn(cache_creation_input_tokens),
    output: numberIn(output_tokens),
    ...(cached > 0 && { cached }),
  };
}
