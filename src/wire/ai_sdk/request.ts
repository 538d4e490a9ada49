/**
 * What a chat sends: of the history that it holds nothing counts but the newest of its messages, and what that answers.
 *
 * @module
 */
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import { type ContentPart, type Json, textOf, type UserMessage } from "../../protocol/message.ts";
import { flag, json, list, optional, record, text, wrong } from "../shape.ts";
import type { Said, Talk, Waiting } from "../wire.ts";
import { approvalId } from "./parts.ts";

/** A message as the chat has it. */
interface UiMessage {
  readonly id?: string | undefined;
  readonly role: string;
  readonly parts: readonly UiPart[];
}

/** What matters of a part: of text, of a file, of a call. */
interface UiPart {
  readonly type: string;
  readonly text?: Json | undefined;
  readonly mediaType?: Json | undefined;
  readonly url?: Json | undefined;
  readonly toolCallId?: Json | undefined;
  readonly state?: Json | undefined;
  readonly preliminary?: Json | undefined;
  readonly output?: Json | undefined;
  readonly errorText?: Json | undefined;
  readonly approval?: Json | undefined;
}

const some = optional(json);

const part = record<UiPart>({
  type: text,
  text: some,
  mediaType: some,
  url: some,
  toolCallId: some,
  state: some,
  preliminary: some,
  output: some,
  errorText: some,
  approval: some,
});

const message = record<UiMessage>({ id: optional(text), role: text, parts: list(part) });

const approval = record({ id: text, approved: flag, reason: optional(text) });

const chat = record({ id: text, messages: list(json), messageId: optional(text) });

/** A chat's request: its session, what came with the pause that it answers, and what it says. */
export function chatOf(body: unknown): Pick<Talk, "session" | "resumeToken" | "say"> {
  const { id: session, messages, messageId } = chat(body, "");
  if (session === "") throw wrong("id", "a name");
  if (messages.length === 0) throw wrong("messages", "one at least");
  const named = messages.findIndex((each) => messageId !== undefined && fieldOf(each, "id") === messageId);
  const at = named < 0 ? messages.length - 1 : named;
  const newest = message(messages[at], `messages.${at}`);

  function say(waiting: Waiting): Said {
    if (newest.role === "assistant") return { answers: answersOf(newest, waiting) };
    if (newest.role !== "user") throw wrong(`messages.${at}.role`, "user, assistant");
    const parts = newest.parts.flatMap((part, index) => contentOf(part, `messages.${at}.parts.${index}`));
    if (parts.length === 0) throw wrong(`messages.${at}.parts`, "a text or a file");
    const prompt: UserMessage = { role: "user", parts };
    const open = waiting.questions.filter(({ tool }) => tool === undefined);
    if (open.length === 0) return { messages: [prompt] };
    return { answers: open.map(({ callId }) => ({ ...about(callId), type: "reply", text: textOf(prompt) })) };
  }
  return { session, resumeToken: resumeTokenOf(messages, at), say };
}

/** What came with the pause that the message at `at` answers: with that message itself, or with a question before it that was said as text. */
function resumeTokenOf(messages: readonly Json[], at: number): string | undefined {
  const isAnswer = fieldOf(messages[at], "role") === "assistant";
  const metadata = fieldOf(messages[isAnswer ? at : at - 1], "metadata");
  const isAsked = fieldOf(metadata, "status") === "paused" && (isAnswer || fieldOf(metadata, "asks") === true);
  const resumeToken = fieldOf(metadata, "resumeToken");
  return isAsked && typeof resumeToken === "string" ? resumeToken : undefined;
}

function fieldOf(value: Json | undefined, name: string): Json | undefined {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

function about(callId: string | undefined): { readonly callId?: string } {
  return callId === undefined ? {} : { callId };
}

/** What a message answers of what is asked: in this pause, and not in another. */
function answersOf({ parts }: UiMessage, { questions, pause }: Waiting): readonly PersonAnswer[] {
  return questions.flatMap(({ callId }: Question): PersonAnswer[] => {
    const part = parts.find(({ toolCallId }) => callId !== undefined && toolCallId === callId);
    if (callId === undefined || !part) return [];
    const { state, preliminary, output, errorText } = part;
    if (state === "approval-responded") {
      const { id, approved, reason } = approval(part.approval, "approval");
      if (id !== approvalId(callId, pause)) return [];
      return [
        approved ? { callId, type: "approve" } : { callId, type: "deny", ...(reason !== undefined && { reason }) },
      ];
    }
    if (state === "output-error") return [{ callId, type: "reply", text: said(errorText) }];
    return state === "output-available" && preliminary !== true ? [{ callId, type: "reply", text: said(output) }] : [];
  });
}

function said(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

/** What the model may read of a part. */
function contentOf({ type, text: said, mediaType, url }: UiPart, at: string): ContentPart[] {
  if (type === "text") return [{ type, text: text(said, `${at}.text`) }];
  if (type !== "file") return [];
  const address = text(url, `${at}.url`);
  const data = /^data:[^,]*;base64,(.*)$/s.exec(address)?.[1];
  return [{
    type: "media",
    mediaType: text(mediaType, `${at}.mediaType`),
    ...(data === undefined ? { url: address } : { data }),
  }];
}
