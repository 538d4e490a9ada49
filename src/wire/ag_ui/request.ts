/**
 * Requests of AG-UI clients. The client sends its whole history, but only its newest message and its answers to open questions count.
 *
 * @module
 */
import type { PersonAnswer, Suggestion } from "../../protocol/question.ts";
import { textOf } from "../../protocol/message.ts";
import type { ContentPart, Json } from "../../protocol/part.ts";
import {
  array,
  id,
  invalid,
  jsonObject,
  lazy,
  object,
  optional,
  type Shape,
  string,
  variant,
} from "../../protocol/shape.ts";
import { answerFields, type Input, type PendingQuestions, questionId } from "../wire.ts";
import { clientTools, type DeclaredTool, toolName } from "../client_tool.ts";

/** A message as the client holds it. Its other fields are read where they are used. */
interface AgMessage {
  readonly id: string;
  readonly role: string;
  readonly [field: string]: Json;
}

/** Parses a message. Every field is kept, because a snapshot sends the message back. */
const message: Shape<AgMessage> = (value, path) => {
  const fields = jsonObject(value, path);
  if (typeof fields.toolCallId === "string") id(fields.toolCallId, `${path}.toolCallId`);
  return { ...fields, id: id(fields.id, `${path}.id`), role: string(fields.role, `${path}.role`) };
};

const answer: Shape<Suggestion> = /* @__PURE__ */ lazy(() => variant("type", answerFields()));

/** Parses an answer: an object of the question's schema, true or false for an approval, or the text of a reply. */
const payload: Shape<Suggestion> = (value, path) => {
  if (typeof value === "string") return replyOf(value);
  if (typeof value === "boolean") return { type: value ? "approve" : "deny" };
  return answer(value, path);
};

/** The client's response to one interrupt. */
type ResumeEntry =
  | { readonly status: "resolved"; readonly interruptId: string; readonly payload: Suggestion }
  | { readonly status: "cancelled"; readonly interruptId: string };

const resumeEntry: Shape<ResumeEntry> = /* @__PURE__ */ lazy(() =>
  variant("status", {
    resolved: { interruptId: id, payload },
    cancelled: { interruptId: id },
  })
);

const request = /* @__PURE__ */ lazy(() =>
  object({
    threadId: id,
    runId: id,
    messages: array(message),
    tools: optional(
      array(object({ name: toolName, description: optional(string), parameters: optional(jsonObject) })),
    ),
    resume: optional(array(resumeEntry)),
  })
);

/** A parsed request. */
export interface RunInput {
  readonly threadId: string;
  readonly runId: string;
  /** The client's history, as the client sent it. */
  readonly messages: readonly AgMessage[];
  /** The resume token of the newest pause. */
  readonly resumeToken: string | undefined;
  /** Returns the input for a session that has these open questions. */
  readonly input: (pending: PendingQuestions) => Input;
}

/** Parses a request. */
export function runInput(body: unknown): RunInput {
  const { threadId, runId, messages, tools = [], resume } = request(body, "");
  if (threadId === "") throw invalid("threadId", "a non-empty string");
  const newest = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
  const isAnswer = resume !== undefined || newest.some(({ role }) => role === "tool"); // a prompt needs no token, and an old one may have expired
  const asking = isAnswer ? messages.findLast(({ encryptedValue }) => encryptedValue !== undefined) : undefined;
  const resumeToken = optional(string)(asking?.encryptedValue, "encryptedValue");
  const input = (pending: PendingQuestions) => inputOf({ messages, newest, resume, tools }, pending);
  return { threadId, runId, messages, resumeToken, input };
}

/** The parts of a request that contain input. */
interface Sent {
  readonly messages: readonly AgMessage[];
  /** The messages after the last one of the agent. */
  readonly newest: readonly AgMessage[];
  readonly resume: readonly ResumeEntry[] | undefined;
  readonly tools: readonly DeclaredTool[];
}

function inputOf({ messages, newest, resume, tools: declared }: Sent, pending: PendingQuestions): Input {
  const { questions } = pending;
  const results = newest.filter(({ role }) => role === "tool");
  const answers = questions.flatMap(({ callId, tool, path }): PersonAnswer[] => {
    const entry = resume?.find((each) => each.interruptId === questionId(callId, pending));
    const isOfRun = path !== undefined || isCalledIn(pending.run, messages, callId);
    const result = isOfRun && results.find(({ toolCallId }) => toolCallId === callId);
    const answer = entry ? answerOf(entry, tool) : result && replyOf(textOf({ parts: contentOf(result) }));
    return answer ? [{ ...(callId !== undefined && { callId }), ...answer } as PersonAnswer] : []; // the answer to this question
  });
  const prompt = newest.findLast(({ role }) => role === "user");
  const isAnswer = resume || answers.length > 0 || (!prompt && results.length > 0);
  const tools = clientTools(declared, isAnswer ? questions : []);
  if (isAnswer) return { answers, tools };
  if (!prompt) throw invalid("messages", `a last message of role "user"`);
  return { messages: [{ role: "user", parts: contentOf(prompt) }], tools };
}

/** Returns true unless the message with the call, whose id begins with that of its run, belongs to another run: it may have the same calls. */
function isCalledIn(run: string, messages: readonly AgMessage[], callId: string | undefined): boolean {
  const calls = ({ toolCalls }: AgMessage) => Array.isArray(toolCalls) ? toolCalls : [];
  const message = messages.findLast((message) => calls(message).some((call) => Object(call).id === callId));
  return message?.id.startsWith(`${run}.`) ?? true;
}

function replyOf(text: string): Suggestion {
  return { type: "reply", text };
}

/** Returns the answer of an entry. A cancelled entry denies the call, or replies to a question of the run with an empty text. */
function answerOf(entry: ResumeEntry, tool: string | undefined): Suggestion {
  if (entry.status === "resolved") return entry.payload;
  return tool === undefined ? replyOf("") : { type: "deny" };
}

const contentPart = /* @__PURE__ */ lazy(() =>
  object({
    type: string,
    text: optional(string),
    source: optional(object({ type: string, value: string, mimeType: optional(string) })),
  })
);

/** Returns the content of a message for the model: text, and media by URL or as data. */
function contentOf({ content = "" }: AgMessage): readonly ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return array(contentPart)(content, "content").flatMap(({ type, text, source }): ContentPart[] => {
    if (text !== undefined) return [{ type: "text", text }];
    if (!source || source.type === "file") return [];
    const { value, mimeType: mediaType = `${type}/*` } = source;
    return [{ type: "media", mediaType, ...(source.type === "url" ? { url: value } : { data: value }) }];
  });
}
