/**
 * Converts conversations and the options of requests for the wire and from it, and reads the replies of hooks.
 *
 * @module
 */
import * as z from "zod";
import {
  fields,
  flag,
  fromWireCall,
  mediaOf,
  partsOf,
  refOf,
  struct,
  text,
  toWireAnswer,
  type WireMessage,
  wireMessage,
  wireResponse,
  wireResult,
  wireTool,
} from "./message.ts";
import {
  type AnswerPart,
  type AssistantMessage,
  type CallResult,
  type ContentPart,
  type Json,
  type Message,
  type ModelOptions,
  type ModelRequest,
  textOf,
  type UserMessage,
} from "../../../../mod.ts";
import { isObject } from "../../../../src/core/kit.ts";

// Converts the options of a request for the wire and from it.

/** Converts options for the wire. */
export function toWireOptions({ temperature, maxTokens, provider = {} }: ModelOptions): Record<string, unknown> {
  return {
    ...provider,
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
  };
}

/** The schema of options. */
const wireOptions: z.core.$ZodType<Record<string, unknown>> = z
  .object({ temperature: z.number().nullish(), max_tokens: z.number().nullish() })
  .catchall(z.json());

/** Converts options from the wire. The output schema, which the wire does not carry, stays. */
export function fromWireOptions(wire: Readonly<Record<string, unknown>>, { output }: ModelOptions): ModelOptions {
  const { temperature, max_tokens: maxTokens, ...rest } = wire;
  const provider = rest as Record<string, Json>; // the schema accepts JSON only
  return {
    ...(typeof temperature === "number" && { temperature }),
    ...(typeof maxTokens === "number" && { maxTokens }),
    ...(output && { output }),
    ...(Object.keys(provider).length > 0 && { provider }),
  };
}

// Converts the messages of a request for the wire and back; a message that hooks have not changed stays the same object.

/** Returns the text and the media of a message or a result. */
function contentOf({ parts }: { readonly parts: readonly (AnswerPart | ContentPart)[] }) {
  const media = parts.flatMap((part) => part.type === "media" ? [refOf(part)] : []);
  return { content: textOf({ parts }), ...(media.length > 0 && { media }) };
}

function toWireResult(result: CallResult): WireMessage {
  return { role: "tool", ...contentOf(result), tool_call_id: result.callId };
}

function toWire(message: Message): readonly WireMessage[] {
  if (message.role === "tool") return message.results.map(toWireResult);
  const { role } = message;
  return [{ role, ...contentOf(message), ...(role === "assistant" && toWireAnswer(message)) }];
}

/** Converts a conversation for the wire. The instructions are its first message. */
export function toWireMessages({ instructions, messages }: Pick<ModelRequest, "instructions" | "messages">) {
  const system: readonly WireMessage[] = instructions === "" ? [] : [{ role: "system", content: instructions }];
  return [...system, ...messages.flatMap(toWire)];
}

/** Converts a conversation from the wire. An unchanged message keeps its identity, because the wire cannot carry all of its fields. */
export function fromWireMessages(
  wire: readonly WireMessage[],
  before: readonly Message[],
): Pick<ModelRequest, "instructions" | "messages"> {
  const known = new Map(
    before.filter(({ role }) => role !== "tool").map((message) => [keyOf(toWire(message)), message]),
  );
  const results = before.flatMap((message) => message.role === "tool" ? message.results : []);
  const system = wire.filter(({ role }) => role === "system").map(({ content }) => content);
  const names = new Map(
    wire.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id, function: { name } }) => [id, name])),
  );
  const messages: Message[] = [];
  for (const each of wire) {
    if (each.role === "system") continue;
    if (each.role !== "tool") {
      messages.push(known.get(keyOf([each])) ?? fromWire(each));
      continue;
    }
    const result = fromWireResult(each, results, names);
    const last = messages.at(-1);
    if (last?.role === "tool") messages[messages.length - 1] = { role: "tool", results: [...last.results, result] };
    else messages.push({ role: "tool", results: [result] });
  }
  return { instructions: system.join("\n\n"), messages };
}

/** Returns a key that equal messages share. */
function keyOf(wire: readonly WireMessage[]): string {
  return JSON.stringify(wire.map(({ role, content, media = [], reasoning_content = "", tool_calls = [] }) => [
    role,
    content,
    media,
    reasoning_content,
    tool_calls.map(({ id, function: { name, arguments: written } }) => [id, name, written]),
  ]));
}

function fromWire(message: WireMessage): UserMessage | AssistantMessage {
  const { role, content, media = [], reasoning_content = "", tool_calls = [] } = message;
  const shown = [...partsOf("text", content), ...media.flatMap((ref) => mediaOf(ref) ?? [])];
  if (role !== "assistant") return { role: "user", parts: shown };
  return { role, parts: [...partsOf("reasoning", reasoning_content), ...shown, ...tool_calls.map(fromWireCall)] };
}

function fromWireResult(
  { content, media = [], tool_call_id: callId = "" }: WireMessage,
  before: readonly CallResult[],
  names: ReadonlyMap<string, string>,
): CallResult {
  const same = before.find((result) => result.callId === callId);
  if (same && textOf(same) === content) return same;
  const name = names.get(callId) ?? same?.name ?? "";
  const parts = [{ type: "text" as const, text: content }, ...media.flatMap((ref) => mediaOf(ref) ?? [])];
  return { callId, name, status: same?.status ?? "ok", parts };
}

// The schemas of the replies of hooks, for each stage.

/** The decision in a reply: `continue` (also empty), `modify`, `respond`, `deny_tool`, `abort_turn` or `hard_abort`, and its reason. */
export interface Decision {
  readonly action: string;
  readonly reason: string;
}

const decision = { action: text, reason: text };
const call = { tool: text, arguments: fields };

/** Accepts `{ [name]: value }`, and also the value alone if it has one of `keys`. */
function nested<S extends z.core.$ZodType>(name: string, keys: readonly string[], schema: S) {
  return z.preprocess((value) => {
    const has = (keys: readonly string[]) =>
      isObject(value) && Object.keys(value).some((key) => keys.includes(key.toLowerCase()));
    return has(keys) && !has([name]) ? { [name]: value } : value;
  }, schema);
}

/** The reply to `before_llm`. The request replaces the original: an absent field is empty. */
export const beforeLlmReply = struct({
  ...decision,
  request: z.optional(struct({
    model: text,
    messages: z.array(wireMessage).default([]),
    tools: z.array(wireTool).default([]),
    options: z._default(wireOptions, {}),
  })),
});

/** The reply to `after_llm`: with the object of the request, or with the response alone. */
export const afterLlmReply = struct({
  ...decision,
  response: nested(
    "response",
    ["role", "content", "reasoning_content", "tool_calls"],
    z.optional(struct({ response: z.optional(wireResponse) })),
  ),
});

/** The reply to `before_tool`. `result`, or `call.hook_result`, is the result of a call that the hook answers. */
export const beforeToolReply = struct({
  ...decision,
  call: z.optional(struct({ ...call, hook_result: z.optional(wireResult) })),
  result: z.optional(wireResult),
});

/** The reply to `after_tool`: with the object of the request, or with the result alone. */
export const afterToolReply = struct({
  ...decision,
  result: nested(
    "result",
    ["for_llm", "for_user", "is_error", "media"],
    z.optional(struct({ ...call, result: z.optional(wireResult) })),
  ),
});

/** The reply to `approve_tool`. */
export const approveToolReply = struct({ approved: flag, reason: text });
