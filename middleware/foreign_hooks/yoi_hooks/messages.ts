/**
 * Messages in the form of yoi. An unchanged message keeps its identity when it is converted back.
 *
 * @module
 */
import * as z from "zod";
import {
  type AnswerPart,
  type AssistantMessage,
  type CallResult,
  type ContentPart as OurPart,
  type Json,
  type Message as OurMessage,
  textOf,
  type ToolMessage,
  user,
  type UserMessage,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";

/** The author of a message. */
export type Role = "user" | "assistant" | "system";

/** A message. Results of tools are parts of a message of the user. */
export interface Message {
  /** The author. A message of the system, added by a hook, is added to the instructions. */
  role: Role;
  /** A text, or parts if there is more than text. */
  content: string | ContentPart[];
  /** The middleware that wrote a message of the user. */
  from?: string | undefined;
}

/** Creates messages. */
export const Message: {
  readonly user: (text: string) => Message;
  readonly assistant: (text: string) => Message;
  readonly system: (text: string) => Message;
} = {
  user: (text) => ({ role: "user", content: text }),
  assistant: (text) => ({ role: "assistant", content: text }),
  system: (text) => ({ role: "system", content: text }),
};

/** A part of a message. */
export type ContentPart =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string; meta?: Json | undefined }
  | { type: "media"; mediaType: string; data?: string | undefined; url?: string | undefined; meta?: Json | undefined }
  | { type: "source"; url?: string | undefined; title?: string | undefined; text?: string | undefined }
  | {
    type: "provider_call";
    callId: string;
    name: string;
    server?: string | undefined;
    input: Json;
    meta?: Json | undefined;
  }
  | {
    type: "provider_result";
    callId: string;
    name: string;
    status: "ok" | "error";
    output: Json;
    meta?: Json | undefined;
  }
  | { type: "refusal"; text: string; category?: string | undefined }
  | { type: "logprobs"; tokens: unknown[] }
  | { type: "tool_use"; id: string; name: string; input: unknown }
  | { type: "tool_result"; tool_use_id: string; content: string; is_error: boolean };

const partSchema: z.ZodType<ContentPart> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("reasoning"), text: z.string(), meta: z.json().optional() }),
  z.object({
    type: z.literal("media"),
    mediaType: z.string(),
    data: z.string().optional(),
    url: z.string().optional(),
    meta: z.json().optional(),
  }),
  z.object({
    type: z.literal("source"),
    url: z.string().optional(),
    title: z.string().optional(),
    text: z.string().optional(),
  }),
  z.object({
    type: z.literal("provider_call"),
    callId: z.string(),
    name: z.string(),
    server: z.string().optional(),
    input: z.json(),
    meta: z.json().optional(),
  }),
  z.object({
    type: z.literal("provider_result"),
    callId: z.string(),
    name: z.string(),
    status: z.enum(["ok", "error"]),
    output: z.json(),
    meta: z.json().optional(),
  }),
  z.object({ type: z.literal("refusal"), text: z.string(), category: z.string().optional() }),
  z.object({ type: z.literal("logprobs"), tokens: z.array(z.unknown()) }),
  z.object({ type: z.literal("tool_use"), id: z.string(), name: z.string(), input: z.unknown() }),
  z.object({
    type: z.literal("tool_result"),
    tool_use_id: z.string(),
    content: z.string(),
    is_error: z.boolean().default(false),
  }),
]);

/** The schema of a message. */
export const messageSchema: z.ZodType<Message> = z.object({
  role: z.enum(["user", "assistant", "system"]),
  content: z.union([z.string(), z.array(partSchema)]),
  from: z.string().optional(),
});

/** A message, or a text of the user. */
const messageOrText: z.ZodType<Message> = z.preprocess(
  (given) => typeof given === "string" ? Message.user(given) : given,
  messageSchema,
);

/** The schema of a context: messages or texts. */
export const contextSchema: z.ZodType<Message[]> = z.array(messageOrText);

/** Converts a message for hooks. */
export function toDraft(message: OurMessage): Message {
  if (message.role === "tool") return { role: "user", content: message.results.map(resultPart) };
  const parts = message.parts.map((part): ContentPart => {
    if (part.type === "logprobs") return { ...part, tokens: [...part.tokens] };
    if (part.type !== "call") return { ...part };
    const { id, name, input } = part;
    return { type: "tool_use", id, name, input };
  });
  return {
    role: message.role,
    content: parts.every(({ type }) => type === "text") ? textOf(message) : parts,
    ...(message.role === "user" && message.from !== undefined && { from: message.from }),
  };
}

function resultPart(result: CallResult): ContentPart {
  const { callId, status } = result;
  return { type: "tool_result", tool_use_id: callId, content: textOf(result), is_error: status !== "ok" };
}

/** Converts the drafts of hooks back to messages, and texts for the instructions. */
export function fromDrafts(
  drafts: readonly Message[],
  messages: readonly OurMessage[],
): { readonly messages: readonly OurMessage[]; readonly system: readonly string[] } {
  const same = new Map<string, OurMessage[]>();
  for (const message of messages) {
    const text = canonicalJson(toDraft(message));
    same.set(text, [...same.get(text) ?? [], message]);
  }
  const results = messages.flatMap((message) => message.role === "tool" ? message.results : []);
  const all = drafts.filter(({ role }) => role !== "system")
    .flatMap((draft) => same.get(canonicalJson(draft))?.shift() ?? toMessages(draft, results));
  const isUnchanged = all.length === messages.length && all.every((message, index) => message === messages[index]);
  return {
    messages: isUnchanged ? messages : all,
    system: drafts.filter(({ role }) => role === "system").map(textIn),
  };
}

function toMessages(draft: Message, results: readonly CallResult[]): readonly OurMessage[] {
  if (draft.role === "assistant") return [assistantMessage(draft)];
  const answered = partsOf(draft).flatMap((part) => {
    if (part.type !== "tool_result") return [];
    const { tool_use_id: callId, content, is_error } = part;
    const { status = "ok", ...result } = results.find((result) => result.callId === callId) ?? { name: "" };
    const kept = (status !== "ok") === is_error ? status : is_error ? "error" as const : "ok" as const;
    return [{ ...result, callId, status: kept, parts: [{ type: "text" as const, text: content }] }];
  });
  const tool: readonly ToolMessage[] = answered.length > 0 ? [{ role: "tool", results: answered }] : [];
  const rest = userMessage(draft);
  return rest.parts.length > 0 ? [...tool, rest] : tool;
}

/** Converts a draft, whatever its role, to a message of the user. */
export function userMessage(draft: Message): UserMessage {
  const { from } = draft;
  const parts = partsOf(draft).filter((part): part is OurPart => part.type === "text" || part.type === "media");
  return { ...user("", from), parts };
}

function assistantMessage(draft: Message): AssistantMessage {
  const parts = partsOf(draft).flatMap((part): AnswerPart[] => {
    if (part.type === "text") return [part];
    if (part.type === "tool_use") return [{ ...part, type: "call" }];
    if (part.type === "tool_result") return [];
    return [part as AnswerPart]; // a JSON value, whose missing fields are absent
  });
  return { role: "assistant", parts };
}

function partsOf({ content }: Message): readonly ContentPart[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function textIn(draft: Message): string {
  return partsOf(draft).map((part) => part.type === "text" ? part.text : "").join("");
}
