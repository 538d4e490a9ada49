/**
 * Answers as the messages API streams them: blocks, each of which begins, grows and ends.
 *
 * @module
 */
import type { FinishReason } from "../../protocol/event.ts";
import type { Usage } from "../../protocol/message.ts";
import { type Fields, isFields, numberIn, textIn } from "../fields.ts";
import type { ModelEvent } from "../model.ts";
import type { Reader } from "../provider.ts";

/** A block that grows. */
interface Block {
  readonly type: string;
  /** The id of a call. */
  readonly id: string;
  /** The input of a call, where it does not come piece by piece. */
  input: Fields | undefined;
  /** What thought is signed with. */
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

/** Reads an answer. */
export function answer(): Reader {
  const blocks = new Map<unknown, Block>();
  let begun = 0;
  let reason = "";
  let counts: Fields = {};

  function read({ type, index, message, content_block, delta, usage }: Fields, events: ModelEvent[]): boolean {
    const block = blocks.get(index);
    if (type === "content_block_start" && isFields(content_block)) begin(index, content_block, events);
    else if (type === "content_block_delta" && block && isFields(delta)) grow(block, delta, events);
    else if (type === "content_block_stop" && block) close(index, block, events);
    else if (type === "message_start" && isFields(message)) count(message.usage);
    else if (type === "message_delta") {
      count(usage);
      if (isFields(delta)) reason = textIn(delta.stop_reason) || reason;
    }
    return type === "message_stop";
  }

  function begin(index: unknown, said: Fields, events: ModelEvent[]): void {
    const { type, id, name, input, data } = said;
    const block: Block = {
      type: textIn(type),
      id: textIn(id) || `call_${begun++}`,
      input: isFields(input) && Object.keys(input).length > 0 ? input : undefined,
      signature: "",
    };
    blocks.set(index, block);
    if (type === "tool_use") events.push({ type: "call.start", id: block.id, name: textIn(name) });
    else if (type === "redacted_thinking") {
      events.push({ type: "reasoning", text: "", meta: { redacted: textIn(data) } });
    } else grow(block, said, events);
  }

  function grow(block: Block, { text, thinking, signature, partial_json: input }: Fields, events: ModelEvent[]): void {
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

  /** Later counts hold for the whole answer; those that are not repeated stand. */
  function count(usage: unknown): void {
    if (isFields(usage)) counts = { ...counts, ...usage };
  }

  function end(): readonly ModelEvent[] {
    if (reason === "") return [];
    const events: ModelEvent[] = [];
    for (const [index, block] of blocks) close(index, block, events); // that nobody closed
    return [...events, { type: "finish", reason: reasons.get(reason) ?? "other", usage: usageOf(counts) }];
  }

  return { read, end };
}

/** The vendor counts what it has cached apart. */
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
