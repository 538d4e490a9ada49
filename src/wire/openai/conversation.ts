/**
 * A conversation as OpenAI's clients send it, and the input that it contains: a prompt with its history, or answers to calls.
 *
 * @module
 */
import type { AnswerFormat } from "../../core/definition.ts";
import { outputFormat } from "../../core/output.ts";
import { parseInput } from "../../core/response.ts";
import { schemaOf } from "../../core/tool.ts";
import { type CallResult, callsOf, type Message, user, type UserMessage } from "../../protocol/message.ts";
import type { AnswerPart, CallPart, ContentPart } from "../../protocol/part.ts";
import type { PersonAnswer, Suggestion } from "../../protocol/question.ts";
import {
  array,
  invalid,
  jsonObject,
  lazy,
  object,
  oneOf,
  type Shape,
  type ShapeError,
  string,
  type UnknownObject,
} from "../../protocol/shape.ts";
import { clientTools, type DeclaredTool } from "../client_tool.ts";
import type { ChatInput, Pause } from "../wire.ts";

// Call ids that contain their session. A request that brings the result of a call names no session, so the id has to.

/** A call and its session. */
export interface CallPlace {
  /** The session's id. */
  readonly session: string;
  /** The call's id within the session. */
  readonly call: string;
}

/** Encodes a call id for the client: the length of the session's id, the session's id, and the call's id. */
export function encodeCallId({ session, call }: CallPlace): string {
  return `${session.length}.${session}.${call}`;
}

/** Decodes a call id from a client. Returns undefined for an id that `encodeCallId()` did not make. */
export function decodeCallId(id: string): CallPlace | undefined {
  const [, length, rest] = /^(\d+)\.(.*)$/s.exec(id) ?? [];
  const end = Number(length);
  return rest?.[end] === "." ? { session: rest.slice(0, end), call: rest.slice(end + 1) } : undefined;
}

// The parts of a request that both of OpenAI's dialects share: content, tools, and parameters that may be null.

/** Parses a value that may be missing or null. */
export function nullish<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, path) => value === undefined || value === null ? undefined : shape(value, path);
}

/** Rejects a parameter that the server does not implement, unless it has one of its default values. */
export function unsupported(...defaults: readonly unknown[]): Shape<undefined> {
  return (value, path) => {
    if (value !== undefined && value !== null && !defaults.includes(value)) {
      throw invalid(path, "no value other than its default");
    }
  };
}

/** Returns the declared tools; none if the client set `tool_choice` to "none". */
export function declaredTools(
  choice: string | undefined,
  tools: readonly DeclaredTool[] = [],
): readonly DeclaredTool[] {
  return choice === "none" ? [] : tools;
}

const imageUrl: Shape<string> = (value, path) =>
  typeof value === "string" ? value : object({ url: string })(value, path).url;

const part = /* @__PURE__ */ lazy(() => {
  const address = { file_data: nullish(string), file_url: nullish(string) };
  return object({
    text: nullish(string),
    image_url: nullish(imageUrl),
    input_audio: nullish(object({ data: string, format: string })),
    file: nullish(object(address)),
    ...address,
    data: nullish(string),
  });
});

/** Parses content: a string, or an array of texts, images, recordings and files. */
export const content: Shape<readonly ContentPart[]> = (value, path) =>
  typeof value === "string" ? [{ type: "text", text: value }] : array(contentPart)(value, path);

/** Parses one part of content. Only an `output_audio`, a recording that the agent made, has its `data` directly. */
export const contentPart: Shape<ContentPart> = (value, path) => {
  const { text, image_url, input_audio, file, ...fields } = part(value, path);
  if (text !== undefined) return { type: "text", text };
  if (image_url !== undefined) return fileAt(image_url, "image/*");
  const { data, format } = input_audio ?? { data: fields.data, format: "*" };
  if (data) return { type: "media", mediaType: `audio/${format}`, data };
  const { file_data, file_url } = file ?? fields;
  const url = file_data ?? file_url;
  if (url === undefined) throw invalid(path, "a text, an image, a recording or a file");
  return fileAt(url, "application/pdf");
};

function fileAt(url: string, otherwise: string): ContentPart {
  const [, mediaType, data] = /^data:([^;,]*)(?:;[^,]*)?;base64,(.*)$/is.exec(url) ?? [];
  return { type: "media", mediaType: mediaType || otherwise, ...(data === undefined ? { url } : { data }) };
}

/** Returns the parts of a refusal: its text, unless `before` is that text already, and the refusal itself. */
export function refusalParts(refusal: string, before = ""): readonly AnswerPart[] {
  if (refusal === "") return [];
  return [...before === refusal ? [] : [{ type: "text", text: refusal } as const], { type: "refusal", text: refusal }];
}

// The format of the answer, for requests with a `response_format` or a `text.format`.

/** Parses the format of the answer; `nested` is the field that contains the schema and its name, if they have a field of their own. */
export function answerFormat(nested?: string): Shape<AnswerFormat | undefined> {
  const kind = object({ type: oneOf("text", "json_object", "json_schema") });
  const named = object({ name: string, schema: nullish(jsonObject) });
  const schemaIn = (format: UnknownObject, path: string) =>
    nested === undefined ? named(format, path) : named(format[nested], `${path}.${nested}`);
  return nullish((value, path): AnswerFormat | undefined => {
    const { type } = kind(value, path);
    if (type === "text") return undefined;
    const { schema = { type: "object" } } = type === "json_object" ? {} : schemaIn(Object(value), path);
    return outputFormat(schemaOf(schema));
  });
}

// The conversation, and the input of a run that it contains.

/** One entry of a conversation. */
export type Entry =
  | UserMessage
  | AssistantEntry
  | CallAnswer;

/** An answer of the model. */
interface AssistantEntry {
  readonly role: "assistant";
  readonly parts: readonly AnswerPart[];
  /** The error of a history that needs the parts, if only a session has them. */
  readonly missing?: ShapeError;
}

/** An answer to a call: its result, or a person's approval or denial. */
interface CallAnswer {
  /** Distinguishes an answer from a message. */
  readonly role: "answer";
  /** The call's id, as the client received it. */
  readonly id: string;
  /** The answer. */
  readonly answer: Suggestion;
}

/** Creates an answer to a call. */
export function callAnswer(id: string, answer: Suggestion): CallAnswer {
  return { role: "answer", id, answer };
}

/** A conversation. */
export interface Conversation {
  /** The entries, oldest first. */
  readonly entries: readonly Entry[];
  /** The field of the request that contains the entries, for errors. */
  readonly field: string;
  /** The session to continue. Default: a new session, whose history is the entries. */
  readonly session?: string | undefined;
  /** Whether an unknown session is refused. Default: false. */
  readonly mustExist?: boolean | undefined;
  /** The tools that the client runs. */
  readonly tools: readonly DeclaredTool[];
  /** The format of the answer. Default: text. */
  readonly answerFormat?: AnswerFormat | undefined;
}

/** The part of a chat input that depends on the conversation. */
export type ConversationInput = Omit<ChatInput, "type" | "reply">;

/** Returns the input of a conversation: answers, if it ends with nothing but answers to calls of a session, and otherwise a prompt. */
export function chatInputOf(conversation: Conversation): ConversationInput {
  const { entries, field, session, mustExist, tools, answerFormat } = conversation;
  const newest = entries.slice(entries.findLastIndex(({ role }) => role === "assistant") + 1);
  const answers = newest.filter((entry) => entry.role === "answer");
  const asking = answers.map(({ id }) => decodeCallId(id)?.session).find(Boolean);
  if (asking !== undefined && answers.length === newest.length) {
    return {
      session: asking,
      input: (pending) => ({
        answers: answers.flatMap((entry) => personAnswers(entry, pending)),
        tools: clientTools(tools, pending.questions),
        answerFormat,
      }),
    };
  }
  const messages = messagesOf(session === undefined ? entries : newest);
  if (messages.at(-1)?.role !== "user") throw invalid(field, `a last message of role "user"`);
  return { session, mustExist, input: () => ({ messages, tools: clientTools(tools), answerFormat }) };
}

/**
 * Returns the answer; none if another run has the session, and none for an approval or a denial of an earlier pause. A result that is sent again after the end of
 * its run stays: it may be a repeated request.
 */
function personAnswers({ id, answer }: CallAnswer, { run, pausedAt }: Pause): PersonAnswer[] {
  const { callId, run: asking, pausedAt: askedAt } = questionOf(decodeCallId(id)?.call ?? "");
  const isOpen = answer.type === "reply" ? run === asking || run === "" : run === asking && pausedAt === askedAt;
  return isOpen ? [{ ...answer, callId }] : [];
}

/** Returns the call and the pause that the id of a question names. */
function questionOf(id: string): Pause & { readonly callId: string } {
  const [, callId = id, run = "", pausedAt] = /^(.*)@([^@]*)@(\d+)$/s.exec(id) ?? [];
  return { callId, run, pausedAt: Number(pausedAt) };
}

/** A message to which adjacent entries are still added. */
type Growing =
  | UserMessage
  | { readonly role: "assistant"; readonly parts: AnswerPart[] }
  | { readonly role: "tool"; readonly results: CallResult[] };

/** Converts entries to messages. Adjacent entries of the assistant become one message, and so do adjacent results. */
function messagesOf(entries: readonly Entry[]): readonly Message[] {
  const messages: Growing[] = [];
  const toolNames = new Map<string, string>();
  for (const entry of entries) {
    const previous = messages.at(-1);
    if (entry.role === "user") messages.push(entry);
    else if (entry.role === "assistant") {
      if (entry.missing) throw entry.missing;
      for (const { id, name } of callsOf(entry)) toolNames.set(id, name);
      if (previous?.role !== "assistant") messages.push({ role: "assistant", parts: [...entry.parts] });
      else for (const part of entry.parts) previous.parts.push(part);
    } else {
      const result = resultOf(entry, toolNames);
      if (!result) continue;
      if (previous?.role === "tool") previous.results.push(result);
      else messages.push({ role: "tool", results: [result] });
    }
  }
  return messages;
}

/** Returns the result of a call; undefined for an approval or a denial. This server knows the answers to its own questions, and no other question counts. */
function resultOf({ id, answer }: CallAnswer, toolNames: ReadonlyMap<string, string>): CallResult | undefined {
  if (answer.type !== "reply") return undefined;
  const callId = originalId(id);
  return { callId, name: toolNames.get(callId) ?? "", status: "ok", parts: user(answer.text).parts };
}

/** Returns the id that the model gave to a call. */
function originalId(id: string): string {
  const asked = decodeCallId(id);
  return asked ? questionOf(asked.call).callId : id;
}

/** Creates the part for a call whose input is JSON text. */
export function callPart(id: string, name: string, input: string): CallPart {
  return { type: "call", id: originalId(id), name, ...parseInput(input) };
}
