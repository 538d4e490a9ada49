/**
 * The requests of the AI SDK's `useChat` without the history, which the session has.
 *
 * @module
 */

/** A message of a chat, such as a `UIMessage` of the AI SDK. */
export interface ChatMessage {
  /** Its id. */
  readonly id: string;
  /** The role of its author. */
  readonly role: string;
  /** Its metadata. That of a message with a question names the run and the pause. */
  readonly metadata?: unknown;
  /** Its parts. */
  readonly parts: readonly { readonly type: string }[];
}

/** The request of a chat, as `DefaultChatTransport` of the AI SDK describes it. */
export interface ChatRequest {
  /** The id of the chat. */
  readonly id: string;
  /** The whole history. */
  readonly messages: readonly ChatMessage[];
  /** "submit-message" or "regenerate-message". */
  readonly trigger: string;
  /** The message that is edited, answered or answered again. Default: the last one. */
  readonly messageId?: string | undefined;
  /** Further fields of the body. */
  readonly body?: object | undefined;
}

/**
 * Returns the body of a request that contains the newest message only, whatever the length of the conversation: the session has the rest. It is the
 * `prepareSendMessagesRequest` of `DefaultChatTransport` for `aiSdkUi()`, also for edits, `regenerate()`, approvals and outputs of tools that the page runs.
 * Without it, `useChat` sends its whole history, which a server refuses with 413 beyond its `maxBody`.
 *
 * Of an assistant's message, which may contain a long run, only the calls of the last step are sent, without their inputs: the open questions are among
 * them. Of the message before a prompt, which may contain the question that the prompt answers, only the metadata is sent.
 *
 * ```ts
 * import { newestMessageOnly } from "@jizai/jizai/client";
 * import { assertEquals } from "@std/assert";
 *
 * // in a page: new DefaultChatTransport({ api: "/chat", prepareSendMessagesRequest: newestMessageOnly })
 * const messages = ["Hi", "Hello!", "More"].map((text, index) => {
 *   return { id: `m${index}`, role: index === 1 ? "assistant" : "user", parts: [{ type: "text", text }] };
 * });
 * const request = { id: "tab", messages, trigger: "submit-message", messageId: "m2" };
 * const { body } = newestMessageOnly(request);
 * assertEquals(body, { ...request, messages: [{ ...messages[1], parts: [] }, messages[2]] });
 * ```
 */
export function newestMessageOnly(
  { id, messages, trigger, messageId, body }: ChatRequest,
): { readonly body: object } {
  const named = messages.findIndex((message) => message.id === messageId);
  const index = named < 0 ? messages.length - 1 : named;
  const [before, newest] = [messages[index - 1], messages[index]];
  const sent = newest?.role === "assistant"
    ? [{ ...newest, parts: answeredParts(newest) }]
    : [...before ? [{ ...before, parts: [] }] : [], ...newest ? [newest] : []];
  return { body: { ...body, id, trigger, messageId, messages: sent } };
}

/** Returns the calls of the last step, which a person or the page may have answered. */
function answeredParts({ parts }: ChatMessage): ChatMessage["parts"] {
  const step = parts.slice(parts.findLastIndex(({ type }) => type === "step-start") + 1);
  return step.filter((part) => "toolCallId" in part).map((part) => ({ ...part, input: undefined })); // JSON leaves it out
}
