/**
 * Messages, tools and options on the wire: those of the chat completions of OpenAI.
 *
 * @module
 */
import * as z from "zod";
import {
  type AnswerPart,
  type AssistantMessage,
  type Call,
  type CallPart,
  type CallResult,
  callsOf,
  type ContentPart,
  type Json,
  type Message,
  type ModelOptions,
  type ModelRequest,
  textOf,
  type ToolDefinition,
  type UserMessage,
} from "../../../../mod.ts";
import { mediaOf, refOf } from "./media.ts";
import { fields, struct, text } from "./struct.ts";

/** A call on the wire. */
export interface WireCall {
  /** Its id. */
  readonly id: string;
  /** Always "function". */
  readonly type: string;
  /** The tool, and its input as a string of JSON. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message on the wire. */
export interface WireMessage {
  /** The author: `system`, `user`, `assistant` or `tool`. */
  readonly role: string;
  /** The text. */
  readonly content: string;
  /** Images and files. */
  readonly media?: readonly string[] | undefined;
  /** The reasoning of the model. */
  readonly reasoning_content?: string | undefined;
  /** The calls of the message. */
  readonly tool_calls?: readonly WireCall[] | undefined;
  /** The call that the message answers. */
  readonly tool_call_id?: string | undefined;
}

/** A tool on the wire. */
export interface WireTool {
  /** Always "function". */
  readonly type: string;
  /** The tool. */
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}

/** The schema of a call. */
export const wireCall: z.ZodType<WireCall> = struct({
  id: text,
  type: text,
  function: struct({ name: text, arguments: text }),
});

/** The schema of a message. */
export const wireMessage: z.ZodType<WireMessage> = struct({
  role: text,
  content: text,
  media: z.array(z.string()).optional(),
  reasoning_content: z.string().optional(),
  tool_calls: z.array(wireCall).optional(),
  tool_call_id: z.string().optional(),
});

/** The schema of a tool. */
export const wireTool: z.ZodType<WireTool> = struct({
  type: text,
  function: struct({ name: text, description: text, parameters: fields }),
});

/** Converts a call for the wire. */
export function toWireCall({ id, name, input, malformed }: Call): WireCall {
  const written = malformed === undefined ? JSON.stringify(input ?? {}) : String(input);
  return { id, type: "function", function: { name, arguments: written } };
}

/** Converts a call from the wire. A call without an id gets one. */
export function fromWireCall({ id, function: { name, arguments: written } }: WireCall): CallPart {
  const made = { type: "call", id: id || crypto.randomUUID(), name } as const;
  try {
    return { ...made, input: written.trim() === "" ? {} : JSON.parse(written) };
  } catch (error) {
    return { ...made, input: written, malformed: error instanceof Error ? error.message : "not JSON" };
  }
}

/** Returns the text and the media of a message or a result. */
function contentOf({ parts }: { readonly parts: readonly (AnswerPart | ContentPart)[] }) {
  const media = parts.flatMap((part) => part.type === "media" ? [refOf(part)] : []);
  return { content: textOf({ parts }), ...(media.length > 0 && { media }) };
}

function toWireResult(result: CallResult): WireMessage {
  return { role: "tool", ...contentOf(result), tool_call_id: result.callId };
}

function toWireAnswer(message: AssistantMessage): WireMessage {
  const thought = message.parts.map((part) => part.type === "reasoning" ? part.text : "").join("");
  const calls = callsOf(message).map(toWireCall);
  return {
    role: "assistant",
    ...contentOf(message),
    ...(thought !== "" && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function toWire(message: Message): readonly WireMessage[] {
  if (message.role === "tool") return message.results.map(toWireResult);
  return [message.role === "user" ? { role: "user", ...contentOf(message) } : toWireAnswer(message)];
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
  const said: readonly { type: "text"; text: string }[] = content === "" ? [] : [{ type: "text", text: content }];
  if (role !== "assistant") {
    return { role: "user", parts: [...said, ...media.flatMap((ref) => mediaOf(ref) ?? [])] };
  }
  const thought: readonly AnswerPart[] = reasoning_content === ""
    ? []
    : [{ type: "reasoning", text: reasoning_content }];
  const files = media.flatMap((ref) => mediaOf(ref) ?? []);
  return { role, parts: [...thought, ...said, ...files, ...tool_calls.map(fromWireCall)] };
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

/** Converts a tool for the wire. */
export function toWireTool({ name, description, schema }: ToolDefinition): WireTool {
  return { type: "function", function: { name, description, parameters: schema } };
}

/** Converts a tool from the wire. */
export function fromWireTool({ function: { name, description, parameters } }: WireTool): ToolDefinition {
  return { name, description, schema: parameters };
}

/** Converts options for the wire. */
export function toWireOptions({ temperature, maxTokens, provider = {} }: ModelOptions): Record<string, unknown> {
  return {
    ...provider,
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
  };
}

/** The schema of options. */
export const wireOptions: z.ZodType<Record<string, unknown>> = z
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
