/**
 * Requests of the AI SDK's chats. The client sends its whole history, but only the message that it submits counts.
 *
 * @module
 */
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import { textOf, type UserMessage } from "../../protocol/message.ts";
import type { ContentPart, Json } from "../../protocol/part.ts";
import {
  array,
  boolean,
  id,
  invalid,
  json,
  jsonObject,
  lazy,
  object,
  oneOf,
  optional,
  type Shape,
  string,
} from "../../protocol/shape.ts";
import { questionId } from "../answer.ts";
import type { ChatInput, Pause, PendingQuestions } from "../wire.ts";

/** An object as the client sends it. */
type JsonObject = { readonly [field: string]: Json };

/** The message that the client submits. */
interface UiMessage {
  readonly id?: string | undefined;
  readonly role: "user" | "assistant";
  readonly parts: readonly JsonObject[];
}

/** Parses a message's id. One that is no text is ignored. */
const messageId: Shape<string | undefined> = (value, path) => typeof value === "string" ? id(value, path) : undefined;

const part: Shape<JsonObject> = (value, path) => {
  const fields = jsonObject(value, path);
  if (typeof fields.toolCallId === "string") id(fields.toolCallId, `${path}.toolCallId`);
  return fields;
};

const message: Shape<UiMessage> = /* @__PURE__ */ lazy(() =>
  object<UiMessage>({ id: messageId, role: oneOf("user", "assistant"), parts: array(part) })
);

const approval = /* @__PURE__ */ lazy(() => object({ id, approved: boolean, reason: optional(string) }));

const request = /* @__PURE__ */ lazy(() =>
  object({ id, messages: array(jsonObject), messageId: optional(id), trigger: optional(json) })
);

/** Parses a request. The submitted message is the one that `messageId` names, or the last. A message of the user that is named is edited, or sent again. */
export function chatRequest(body: unknown): Pick<ChatInput, "session" | "resumeToken" | "input"> {
  const { id: session, messages, messageId, trigger } = request(body, "");
  if (session === "") throw invalid("id", "a non-empty string");
  if (messages.length === 0) throw invalid("messages", "a message");
  const named = messages.findIndex(({ id }) => id !== undefined && id === messageId);
  const edit = named >= 0;
  const index = edit ? named : messages.length - 1;
  const path = `messages.${index}`;
  const submitted = message(messages[index], path);
  const regenerate = trigger === "regenerate-message";
  const isAnswer = submitted.role === "assistant";
  const asking = messages[isAnswer ? index : index - 1]; // a question that is shown as text is in the message before the reply
  const { status, run, pausedAt, asks, resumeToken } = Object(asking?.metadata);
  const hasToken = status === "paused" && (isAnswer || asks) && typeof resumeToken === "string";
  return {
    session,
    resumeToken: hasToken ? resumeToken : undefined,
    input(pending) {
      const isOfRun = run === undefined || run === pending.run; // another run of the session may have the same calls
      if (isAnswer) return { answers: isOfRun ? answersOf(submitted, pending) : [] };
      const prompt = promptOf(submitted, path);
      const canReply = !regenerate && (!edit || (isOfRun && pausedAt === pending.pausedAt)); // an edit of an earlier reply is a new prompt
      const open = pending.questions.filter(({ tool }) => canReply && tool === undefined);
      const replaces = regenerate ? "id-or-content" : edit ? "id" : undefined;
      return open.length > 0 ? { answers: repliesTo(open, prompt) } : { messages: [prompt], replaces };
    },
  };
}

function promptOf(submitted: UiMessage, path: string): UserMessage {
  const parts = submitted.parts.flatMap((part, index) => contentOf(part, `${path}.parts.${index}`));
  if (parts.length === 0) throw invalid(`${path}.parts`, "a text or file");
  const { id } = submitted;
  return { role: "user", parts, ...(id !== undefined && { id }) };
}

/** Returns a new message as the reply to each of the run's open questions. */
function repliesTo(open: readonly Question[], prompt: UserMessage): readonly PersonAnswer[] {
  const text = textOf(prompt);
  return open.map(({ callId }) => ({ ...(callId !== undefined && { callId }), type: "reply", text }));
}

/** Returns the answers in a message to the open questions of this pause. */
function answersOf({ parts }: UiMessage, pending: PendingQuestions): readonly PersonAnswer[] {
  return pending.questions.flatMap(({ callId }) => {
    const part = parts.find(({ toolCallId }) => toolCallId === callId);
    return callId === undefined || !part ? [] : partAnswers(part, callId, pending);
  });
}

/** Returns the answer in the part of a call; none if the part has no answer to this pause. */
function partAnswers(
  { state, preliminary, output, errorText, approval: given }: JsonObject,
  callId: string,
  pause: Pause,
): PersonAnswer[] {
  if (state === "approval-responded") {
    const { id, approved, reason } = approval(given, "approval");
    if (id !== questionId(callId, pause)) return [];
    return [approved ? { callId, type: "approve" } : { callId, type: "deny", ...(reason !== undefined && { reason }) }];
  }
  if (state === "output-error") return [{ callId, type: "reply", text: outputText(errorText) }];
  if (state !== "output-available" || preliminary === true) return [];
  return [{ callId, type: "reply", text: outputText(output) }];
}

function outputText(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

/** Returns the content of a part for the model; nothing for a part that is neither text nor a file. */
function contentOf({ type, text, mediaType, url }: JsonObject, path: string): ContentPart[] {
  if (type === "text") return [{ type, text: string(text, `${path}.text`) }];
  if (type !== "file") return [];
  const address = string(url, `${path}.url`);
  const data = /^data:[^,]*;base64,(.*)$/s.exec(address)?.[1];
  return [{
    type: "media",
    mediaType: string(mediaType, `${path}.mediaType`),
    ...(data === undefined ? { url: address } : { data }),
  }];
}
