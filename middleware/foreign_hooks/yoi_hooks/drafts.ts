/**
 * Converts messages to drafts in the form of yoi, which hooks may change, and back. An unchanged message keeps its identity.
 *
 * @module
 */
import {
  type AnswerPart,
  type AssistantMessage,
  type CallResult,
  type ContentPart as OurPart,
  type Message as OurMessage,
  textOf,
  type ToolMessage,
  user,
  type UserMessage,
} from "../../../mod.ts";
import { canonicalJson } from "../../../src/core/kit.ts";
import type { ContentPart, Message } from "./messages.ts";

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
