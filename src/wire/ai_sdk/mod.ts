/**
 * The wires of the AI SDK's `useChat` and `useObject`.
 *
 * @module
 */
import { textOf, type UserMessage } from "../../protocol/message.ts";
import type { ContentPart, Json } from "../../protocol/part.ts";
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import {
  array,
  boolean,
  expectNames,
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
import { chunkEncoder } from "./chunks.ts";
import { messagesOf } from "./messages.ts";
import { type ChatInput, type Pause, type PendingQuestions, questionId, type Reply, type Wire } from "../wire.ts";
export { aiSdkObject, type AiSdkObjectOptions } from "./text_response.ts";
export type { Wire } from "../wire.ts";

// Requests of the AI SDK's chats. The client sends its whole history, but only the message that it submits counts.

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
function chatRequest(body: unknown): Pick<ChatInput, "session" | "resumeToken" | "input"> {
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
      const unanswered = pending.questions.filter(({ tool }) => canReply && tool === undefined);
      const replaces = regenerate ? "id-or-content" : edit ? "id" : undefined;
      return unanswered.length > 0 ? { answers: repliesTo(unanswered, prompt) } : { messages: [prompt], replaces };
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
function repliesTo(unanswered: readonly Question[], prompt: UserMessage): readonly PersonAnswer[] {
  const text = textOf(prompt);
  return unanswered.map(({ callId }) => ({ ...(callId !== undefined && { callId }), type: "reply", text }));
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
  { state, preliminary, output, errorText, approval: approvalFields }: JsonObject,
  callId: string,
  pause: Pause,
): PersonAnswer[] {
  if (state === "approval-responded") {
    const { id, approved, reason } = approval(approvalFields, "approval");
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

// The wires, and their options.

/** Options of `aiSdkUi()` and `aiSdkMessages()`. */
export interface AiSdkUiOptions {
  /** The path of the routes. Default: `/chat`. */
  readonly path?: string;
}

const reply: Reply = { type: "stream", headers: { "x-vercel-ai-ui-message-stream": "v1" }, encoder: chunkEncoder };

/**
 * Serves `useChat` and `DefaultChatTransport` of the AI SDK, with the UI message stream v1. The id of a chat is the id of its session.
 *
 * - `POST /chat` takes the newest message of the chat, or the approvals and tool outputs in it. The rest of the client's history is ignored: the session has
 *   the history, and only its open questions can be answered. `newestMessageOnly` of `@jizai/jizai/client` lets the page send no more than that. `regenerate()` removes the answer and its prompt from the session and answers the prompt anew.
 *   `sendMessage({ text, messageId })` removes that message and everything after it, and answers the new text. If the session does not have the message, for
 *   example because a hook refused it, nothing is removed.
 * - `GET /chat/:id/stream` sends every chunk of the last run from the start, for `resume: true`. It answers 204 if there is no run. It needs a `log`, and an
 *   `onClientGone` other than "stop".
 * - `DELETE /chat/:id/stream` stops the run. Call it from the page's Stop button if `onClientGone` is not "stop".
 *
 * A call inside a subagent is a part of its own once it starts. The deltas of a subagent, and its calls that the provider runs, arrive as transient
 * `data-subagent`. A question of a hook about the run is shown as text, and the next message answers it. On a server with `resumeTokens`, the message that
 * asks carries the token in its metadata and brings it back; the server then knows nothing about earlier runs. Data events arrive as `data-<name>`. If their
 * data has an `id`, so does the part. The changes of a `streamed()` output arrive as transient `data-output`; `PartialOutput` of `@jizai/jizai/output` folds
 * them in `onData`.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
 * import { assertStringIncludes } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [aiSdkUi()] });
 *
 * const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "Hi" }] }];
 * const response = await app.request("/chat", { // the request of useChat()
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ id: "c1", messages }),
 * });
 * assertStringIncludes(await response.text(), `{"type":"text-delta","id":"1.0","delta":"Hello!"}`);
 * ```
 */
export function aiSdkUi(options: AiSdkUiOptions = {}): Wire {
  expectNames("Cannot create aiSdkUi()", options, ["path"]);
  const { path = "/chat" } = options;
  const stream = `${path}/:jizai_chat/stream`;
  return {
    routes: () => [
      { method: "POST", path, parse: ({ body }) => ({ type: "chat", ...chatRequest(body), reply }) },
      {
        method: "GET",
        path: stream,
        parse: ({ params: { jizai_chat: id = "" } }) => ({ type: "follow", session: id, reply }),
      },
      {
        method: "DELETE",
        path: stream,
        parse: ({ params: { jizai_chat: id = "" } }) => ({ type: "stop", session: id }),
      },
    ],
  };
}

/**
 * Serves the messages of a chat, so that a page can be reloaded: `GET /chat/:id` returns them, or 404 for an unknown chat. Together with `resume: true` the
 * page shows a running or paused chat completely, with its open questions and the calls inside subagents, and shows nothing twice. Data events are not
 * included.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
 * import { assertEquals } from "@std/assert";
 *
 * const app = serve(agent({ model: scripted("Hello!") }), { wires: [aiSdkUi(), aiSdkMessages()] });
 *
 * const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "Hi" }] }];
 * const answer = await app.request("/chat", { // the request of useChat()
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ id: "c1", messages }),
 * });
 * await answer.text();
 *
 * const response = await app.request("/chat/c1"); // after a reload
 * const [hi, hello] = response.ok ? await response.json() : [];
 * assertEquals(hi.parts, [{ type: "text", text: "Hi" }]);
 * assertEquals(hello.parts, [{ type: "step-start" }, { type: "text", text: "Hello!", state: "done" }]);
 * ```
 */
export function aiSdkMessages(options: AiSdkUiOptions = {}): Wire {
  expectNames("Cannot create aiSdkMessages()", options, ["path"]);
  const { path = "/chat" } = options;
  return {
    routes: () => [{
      method: "GET",
      path: `${path}/:jizai_chat`,
      parse: ({ params: { jizai_chat: id = "" } }) => ({ type: "session", session: id, body: messagesOf }),
    }],
  };
}
