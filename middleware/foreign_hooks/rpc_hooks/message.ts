/**
 * Messages, tools and options, as they are on the wire: those of OpenAI's chat completions.
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
} from "../../../mod.ts";
import { mediaOf, refOf } from "./media.ts";
import { fields, struct, text } from "./struct.ts";

/** A call on the wire. */
export interface WireCall {
  /** Its id. */
  readonly id: string;
  /** There is but one. */
  readonly type: string;
  /** The tool, and its input as JSON text. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message on the wire. */
export interface WireMessage {
  /** Who says it: `system`, `user`, `assistant` or `tool`. */
  readonly role: string;
  /** What is said. */
  readonly content: string;
  /** Images and files. */
  readonly media?: readonly string[] | undefined;
  /** What the model thought. */
  readonly reasoning_content?: string | undefined;
  /** The calls it makes. */
  readonly tool_calls?: readonly WireCall[] | undefined;
  /** The call it answers. */
  readonly tool_call_id?: string | undefined;
}

/** A tool on the wire. */
export interface WireTool {
  /** There is but one. */
  readonly type: string;
  /** The tool. */
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}

/** What a call on the wire has to look like. */
export const wireCall: z.ZodType<WireCall> = struct({
  id: text,
  type: text,
  function: struct({ name: text, arguments: text }),
});

/** What a message on the wire has to look like. */
export const wireMessage: z.ZodType<WireMessage> = struct({
  role: text,
  content: text,
  media: z.array(z.string()).optional(),
  reasoning_content: z.string().optional(),
  tool_calls: z.array(wireCall).optional(),
  tool_call_id: z.string().optional(),
});

/** What a tool on the wire has to look like. */
export const wireTool: z.ZodType<WireTool> = struct({
  type: text,
  function: struct({ name: text, description: text, parameters: fields }),
});

/** A call, for the wire. */
export function toWireCall({ id, name, input, malformed }: Call): WireCall {
  const written = malformed === undefined ? JSON.stringify(input ?? {}) : String(input);
  return { id, type: "function", function: { name, arguments: written } };
}

/** A call from the wire; one without an id is given one. */
export function fromWireCall({ id, function: { name, arguments: written } }: WireCall): CallPart {
  const made = { type: "call", id: id || crypto.randomUUID(), name } as const;
  try {
    return { ...made, input: written.trim() === "" ? {} : JSON.parse(written) };
  } catch (error) {
    return { ...made, input: written, malformed: error instanceof Error ? error.message : "not JSON" };
  }
}

/** What a message or a result says, and what is with it. */
function said({ parts }: { readonly parts: readonly (AnswerPart | ContentPart)[] }) {
  const media = parts.flatMap((part) => part.type === "media" ? [refOf(part)] : []);
  return { content: textOf({ parts }), ...(media.length > 0 && { media }) };
}

function toWireResult(result: CallResult): WireMessage {
  return { role: "tool", ...said(result), tool_call_id: result.callId };
}

function toWireAnswer(message: AssistantMessage): WireMessage {
  const thought = message.parts.map((part) => part.type === "reasoning" ? part.text : "").join("");
  const calls = callsOf(message).map(toWireCall);
  return {
    role: "assistant",
    ...said(message),
    ...(thought !== "" && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function toWire(message: Message): readonly WireMessage[] {
  if (message.role === "tool") return message.results.map(toWireResult);
  return [message.role === "user" ? { role: "user", ...said(message) } : toWireAnswer(message)];
}

/** A conversation, for the wire: what the model is told of its task is its first message. */
export function toWireMessages({ instructions, messages }: Pick<ModelRequest, "instructions" | "messages">) {
  const system: readonly WireMessage[] = instructions === "" ? [] : [{ role: "system", content: instructions }];
  return [...system, ...messages.flatMap(toWire)];
}

/** A conversation from the wire. What is in it as it was before comes back as the very same: a provider may want more of it than the wire takes. */
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

/** What two messages share that say the same. */
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
  const told: readonly { type: "text"; text: string }[] = content === "" ? [] : [{ type: "text", text: content }];
  if (role !== "assistant") {
    return { role: "user", parts: [...told, ...media.flatMap((ref) => mediaOf(ref) ?? [])] };
  }
  const thought: readonly AnswerPart[] = reasoning_content === ""
    ? []
    : [{ type: "reasoning", text: reasoning_content }];
  return { role, parts: [...thought, ...told, ...tool_calls.map(fromWireCall)] };
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

/** A tool, for the wire. */
export function toWireTool({ name, description, schema }: ToolDefinition): WireTool {
  return { type: "function", function: { name, description, parameters: schema } };
}

/** A tool from the wire. */
export function fromWireTool({ function: { name, description, parameters } }: WireTool): ToolDefinition {
  return { name, description, schema: parameters };
}

/** Options, for the wire. */
export function toWireOptions({ temperature, maxTokens, provider = {} }: ModelOptions): Record<string, unknown> {
  return {
    ...provider,
    ...(temperature !== undefined && { temperature }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
  };
}

/** What options on the wire have to look like. */
export const wireOptions: z.ZodType<Record<string, unknown>> = z
  .object({ temperature: z.number().nullish(), max_tokens: z.number().nullish() })
  .catchall(z.json());

/** Options from the wire; the schema of the answer, of which it does not speak, stays as it was. */
export function fromWireOptions(wire: Readonly<Record<string, unknown>>, { output }: ModelOptions): ModelOptions {
  const { temperature, max_tokens: maxTokens, ...rest } = wire;
  const provider = rest as Record<string, Json>; // JSON, as it was parsed
  return {
    ...(typeof temperature === "number" && { temperature }),
    ...(typeof maxTokens === "number" && { maxTokens }),
    ...(output && { output }),
    ...(Object.keys(provider).length > 0 && { provider }),
  };
}
