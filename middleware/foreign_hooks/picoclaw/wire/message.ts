/**
 * Messages, calls and tools on the wire: those of the chat completions of OpenAI.
 *
 * @module
 */
import * as z from "zod";
import {
  type AnswerPart,
  type Artifact,
  type Call,
  type CallPart,
  callsOf,
  type ContentPart,
  type FinishReason,
  type MediaPart,
  type ModelResponse,
  textOf,
  type ToolDefinition,
  type ToolResult,
} from "../../../../mod.ts";
import { isObject } from "../../../../src/core/kit.ts";

// Schemas that read JSON as Go does.

/** Accepts an object as Go reads it: the case of names is ignored, null is absent, unknown fields are ignored. */
export function struct<S extends z.core.$ZodShape>(shape: S): z.core.$ZodType<z.output<z.ZodObject<S>>> {
  const names = new Map(Object.keys(shape).map((name) => [name.toLowerCase(), name]));
  return z.preprocess((value) => {
    if (!isObject(value)) return value ?? {};
    return Object.fromEntries(
      Object.entries(value).flatMap(([member, field]) => {
        const name = names.get(member.toLowerCase());
        return name === undefined || field === null ? [] : [[name, field]];
      }),
    );
  }, z.object(shape));
}

/** A string; empty if absent. */
export const text: z.ZodDefault<z.ZodString> = z.string().default("");
/** A boolean; false if absent. */
export const flag: z.ZodDefault<z.ZodBoolean> = z.boolean().default(false);
/** Strings; none if absent. */
const texts: z.ZodDefault<z.ZodArray<z.ZodString>> = z.array(z.string()).default([]);
/** Any fields; none if absent. */
export const fields: z.ZodDefault<z.ZodRecord<z.ZodString, z.ZodUnknown>> = z.record(z.string(), z.unknown())
  .default({});

// Images and files on the wire: references.

/** Returns the reference of an image or a file: its URL, or a data URL. */
export function refOf({ mediaType, data, url }: MediaPart): string {
  return url ?? `data:${mediaType};base64,${data}`;
}

const types: Readonly<Record<string, string>> = {
  gif: "image/gif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  mp3: "audio/mpeg",
  pdf: "application/pdf",
  png: "image/png",
  wav: "audio/wav",
  webp: "image/webp",
};

/** Returns the image or file of a reference; undefined for a reference that only the home system knows. */
export function mediaOf(ref: string): MediaPart | undefined {
  const [, mediaType, data] = ref.match(/^data:([\w.+-]+\/[\w.+-]+);base64,(.*)$/s) ?? [];
  if (mediaType !== undefined && data !== undefined) return { type: "media", mediaType, data };
  if (!/^https?:/.test(ref)) return undefined;
  const [, ending = ""] = URL.parse(ref)?.pathname.match(/\.(\w+)$/) ?? [];
  return { type: "media", mediaType: types[ending.toLowerCase()] ?? "application/octet-stream", url: ref };
}

// Messages, calls and tools: converts each of them for the wire and back.

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
const wireCall: z.core.$ZodType<WireCall> = struct({
  id: text,
  type: text,
  function: struct({ name: text, arguments: text }),
});

/** The schema of a message. */
export const wireMessage: z.core.$ZodType<WireMessage> = struct({
  role: text,
  content: text,
  media: z.array(z.string()).optional(),
  reasoning_content: z.string().optional(),
  tool_calls: z.array(wireCall).optional(),
  tool_call_id: z.string().optional(),
});

/** The schema of a tool. */
export const wireTool: z.core.$ZodType<WireTool> = struct({
  type: text,
  function: struct({ name: text, description: text, parameters: fields }),
});

/** Converts a call for the wire. */
function toWireCall({ id, name, input, malformed }: Call): WireCall {
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

/** Converts a tool for the wire. */
export function toWireTool({ name, description, schema }: ToolDefinition): WireTool {
  return { type: "function", function: { name, description, parameters: schema } };
}

/** Converts a tool from the wire. */
export function fromWireTool({ function: { name, description, parameters } }: WireTool): ToolDefinition {
  return { name, description, schema: parameters };
}

// Results of tools: a result that a hook has not changed keeps the fields that the wire does not carry.

/** A result on the wire. */
export interface WireResult {
  /** The text for the model. */
  readonly for_llm: string;
  /** The text for the person. */
  readonly for_user: string;
  /** Whether the person sees nothing. */
  readonly silent: boolean;
  /** Whether the call failed. */
  readonly is_error: boolean;
  /** Whether the call continues in the background. */
  readonly async: boolean;
  /** Images and files: for the person if `response_handled` is true, else for the model. */
  readonly media: readonly string[];
  /** The artifacts that are stored elsewhere. */
  readonly artifact_tags: readonly string[];
  /** Whether the person has received the answer. */
  readonly response_handled: boolean;
}

/** The schema of a result. An absent field is empty. */
export const wireResult: z.core.$ZodType<WireResult> = struct({
  for_llm: text,
  for_user: text,
  silent: flag,
  is_error: flag,
  async: flag,
  media: texts,
  artifact_tags: texts,
  response_handled: flag,
});

/** Converts a result for the wire. */
export function toWireResult(result: ToolResult): WireResult {
  const { status, parts, person = "", silent = false, artifacts = [], handled = false } = result;
  const made = artifacts.map(({ uri }) => uri);
  const shown = parts.flatMap((part) => part.type === "media" ? [refOf(part)] : []);
  return {
    for_llm: textOf(result),
    for_user: person,
    silent,
    is_error: status !== "ok",
    async: false,
    media: handled ? [...shown, ...made] : shown,
    artifact_tags: handled ? [] : made.map((uri) => `[${uri}]`),
    response_handled: handled,
  };
}

/** Converts a result from the wire. Fields that the wire does not carry come from the original, `before`. */
export function fromWireResult(wire: WireResult, before?: ToolResult): ToolResult {
  const { for_llm, for_user, silent, is_error, media, artifact_tags, response_handled: handled } = wire;
  const refs = media.map((ref) => mediaOf(ref) ?? ref);
  const seen = handled ? [] : refs.filter((ref) => typeof ref !== "string");
  const made: readonly Artifact[] = handled
    ? media.map(artifactOf)
    : [...refs.filter((ref) => typeof ref === "string"), ...artifact_tags].map(artifactOf);
  const { status = "ok", context, input } = before ?? {};
  return {
    type: "result",
    status: is_error === (status !== "ok") ? status : is_error ? "error" : "ok",
    parts: [...partsOf("text", for_llm), ...noteOf(artifact_tags, for_llm), ...seen],
    ...(context && { context }),
    ...(input !== undefined && { input }),
    ...(for_user !== "" && { person: for_user }),
    ...(silent && { silent }),
    ...(made.length > 0 && { artifacts: made }),
    ...(handled && { handled }),
  };
}

/** Returns a text for the model with the paths of artifacts. */
function noteOf(tags: readonly string[], text: string): readonly ContentPart[] {
  const note = `Local artifact paths: ${tags.join(" ")}`;
  return tags.length === 0 || text.includes(note) ? [] : [{ type: "text", text: `\n${note}` }];
}

function artifactOf(tag: string): Artifact {
  const uri = tag.replace(/^\[(.*)\]$/s, "$1");
  const { mediaType } = mediaOf(uri) ?? {};
  return { uri, ...(mediaType !== undefined && { mediaType }) };
}

// Responses of models: parts that a hook has not changed keep their identity.

/** A response on the wire. */
export interface WireResponse {
  /** Always "assistant". */
  readonly role?: string | undefined;
  /** The text. */
  readonly content: string;
  /** The reasoning of the model. */
  readonly reasoning_content?: string | undefined;
  /** The calls of the response. */
  readonly tool_calls?: readonly WireCall[] | undefined;
  /** The reason why the model stopped. */
  readonly finish_reason: string;
  /** The tokens of the request and the response. */
  readonly usage?: WireUsage | undefined;
}

/** Tokens, on the wire. */
export interface WireUsage {
  /** The tokens of the request. */
  readonly prompt_tokens: number;
  /** The tokens of the response. */
  readonly completion_tokens: number;
  /** Both. */
  readonly total_tokens: number;
}

const count = z.number().default(0);

/** The schema of a response. */
export const wireResponse: z.core.$ZodType<WireResponse> = struct({
  role: z.string().optional(),
  content: text,
  reasoning_content: z.string().optional(),
  tool_calls: z.array(wireCall).optional(),
  finish_reason: text,
  usage: z.optional(struct({ prompt_tokens: count, completion_tokens: count, total_tokens: count })),
});

const reasons: readonly (readonly [FinishReason, string])[] = [
  ["stop", "stop"],
  ["calls", "tool_calls"],
  ["length", "length"],
  ["filter", "content_filter"],
  ["refusal", "content_filter"],
  ["empty", "stop"],
  ["other", "other"],
];

/** Converts a response for the wire. */
export function toWireResponse(response: ModelResponse): WireResponse {
  const { finish, usage: { input, output } } = response;
  return {
    role: "assistant",
    ...toWireAnswer(response),
    finish_reason: reasons.find(([reason]) => reason === finish)?.[1] ?? "",
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
  };
}

/** Converts a response from the wire. Unchanged parts keep their identity, and the usage stays. */
export function fromWireResponse(wire: WireResponse, before: ModelResponse): ModelResponse {
  const { content, reasoning_content = "", tool_calls = [], finish_reason } = wire;
  const of = (type: AnswerPart["type"]) => before.parts.filter((part) => part.type === type);
  const made = callsOf(before);
  const calls = tool_calls.map((call) => {
    const same = made.find((each) => isSame(toWireCall(each), call));
    if (same) return same;
    const isIncomplete = made.some(({ id, incomplete }) => incomplete && id === call.id); // it stays so, whatever the hook writes
    return isIncomplete ? { ...fromWireCall(call), incomplete: true } : fromWireCall(call);
  });
  const finish = reasons.find(([, reason]) => reason === finish_reason)?.[0];
  return {
    ...before,
    parts: [
      ...reasoning_content === thoughtOf(before) ? of("reasoning") : partsOf("reasoning", reasoning_content),
      ...content === textOf(before) ? of("text") : partsOf("text", content),
      ...calls,
    ],
    finish: finish ?? (calls.length > 0 ? "calls" : "stop"),
  };
}

/** The parts of an answer of the model. */
interface Answer {
  readonly parts: readonly AnswerPart[];
}

/** Converts an answer for the wire: the fields that messages and responses share. */
export function toWireAnswer(answer: Answer): Pick<WireResponse, "content" | "reasoning_content" | "tool_calls"> {
  const thought = thoughtOf(answer);
  const calls = callsOf(answer).map(toWireCall);
  return {
    content: textOf(answer),
    ...(thought !== "" && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** Returns a text as a part; no part for an empty text. */
export function partsOf<T extends "text" | "reasoning">(type: T, text: string): readonly { type: T; text: string }[] {
  return text === "" ? [] : [{ type, text }];
}

function thoughtOf({ parts }: Answer): string {
  return parts.map((part) => part.type === "reasoning" ? part.text : "").join("");
}

function isSame(a: WireCall, b: WireCall): boolean {
  return a.id === b.id && a.function.name === b.function.name && a.function.arguments === b.function.arguments;
}
