/**
 * What an agent of AG-UI is sent: of the history that a client holds nothing counts but what it says last, and what that answers.
 *
 * @module
 */
import type { PersonAnswer, Suggestion } from "../../protocol/question.ts";
import { type ContentPart, type Json, textOf, type UserMessage } from "../../protocol/message.ts";
import { answers } from "../answer.ts";
import { clientTools, toolName } from "../client_tool.ts";
import { json, list, object, optional, record, type Shape, tagged, text, wrong } from "../shape.ts";
import type { Said, Waiting } from "../wire.ts";

/** A message as a client has it. */
export interface AgMessage {
  readonly id: string;
  readonly role: string;
  readonly content?: Json | undefined;
  readonly toolCallId?: string | undefined;
  readonly encryptedValue?: string | undefined;
}

const message = record<AgMessage>({
  id: text,
  role: text,
  content: optional(json),
  toolCallId: optional(text),
  encryptedValue: optional(text),
});

const tool = record({ name: toolName, description: optional(text), parameters: optional(object) });

const answer: Shape<Suggestion> = tagged("type", answers);

/** What a person answers: as the question's schema has it, or simply yes, no, or a text. Without a word from them nothing runs. */
const payload: Shape<Suggestion> = (value, at) => {
  if (typeof value === "string") return replyOf(value);
  if (typeof value === "boolean") return { type: value ? "approve" : "deny" };
  return answer(value, at);
};

type Entry =
  | { readonly status: "resolved"; readonly interruptId: string; readonly payload: Suggestion }
  | { readonly status: "cancelled"; readonly interruptId: string };

const entry: Shape<Entry> = tagged("status", {
  resolved: { interruptId: text, payload },
  cancelled: { interruptId: text },
});

const input = record({
  threadId: text,
  runId: text,
  messages: list(object),
  tools: optional(list(tool)),
  resume: optional(list(entry)),
});

/** What a run is begun or gone on with. */
export interface RunInput {
  readonly threadId: string;
  readonly runId: string;
  /** What the client holds, as it holds it. */
  readonly messages: readonly { readonly [key: string]: Json }[];
  /** What came with the newest pause. */
  readonly resumeToken: string | undefined;
  readonly say: (waiting: Waiting) => Said;
}

/** By what a question is known, in one pause. */
export function interruptId(callId: string | undefined, pause: number): string {
  return `${callId ?? ""}@${pause}`;
}

/** Reads what is sent. */
export function runInput(body: unknown): RunInput {
  const { threadId, runId, messages: held, tools = [], resume } = input(body, "");
  if (threadId === "") throw wrong("threadId", "a name");
  const messages = list(message)(held, "messages");
  const last = messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1);
  const outcomes = last.filter(({ role }) => role === "tool");
  const declared = tools.map((tool) => ({ ...tool, schema: tool.parameters }));

  function say({ questions, pause }: Waiting): Said {
    const given = questions.flatMap(({ callId, tool }): PersonAnswer[] => {
      const entry = resume?.find((each) => each.interruptId === interruptId(callId, pause));
      const outcome = outcomes.find(({ toolCallId }) => toolCallId === callId);
      const answer = entry ? answerOf(entry, tool) : outcome && replyOf(textOf({ parts: contentOf(outcome) }));
      return answer ? [{ ...(callId !== undefined && { callId }), ...answer } as PersonAnswer] : []; // of its call
    });
    const prompt = last.findLast(({ role }) => role === "user");
    if (resume || given.length > 0 || (!prompt && outcomes.length > 0)) {
      return { answers: given, tools: clientTools(declared, questions) };
    }
    if (!prompt) throw wrong("messages", "the last of them to be the person's");
    const said: UserMessage = { role: "user", parts: contentOf(prompt) };
    return { messages: [said], tools: clientTools(declared) };
  }
  const { encryptedValue: resumeToken } = messages.findLast(({ encryptedValue }) => encryptedValue !== undefined) ?? {};
  return { threadId, runId, messages: held, resumeToken, say };
}

function replyOf(text: string): Suggestion {
  return { type: "reply", text };
}

/** What an entry answers: where nobody has, that is a no to a call, and nothing else to say. */
function answerOf(entry: Entry, tool: string | undefined): Suggestion {
  if (entry.status === "resolved") return entry.payload;
  return tool === undefined ? replyOf("") : { type: "deny" };
}

const source = record({ type: text, value: text, mimeType: optional(text) });

const part = record({ type: text, text: optional(text), source: optional(source) });

/** What the model may read of a message. */
function contentOf({ content = "" }: AgMessage): readonly ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return list(part)(content, "content").flatMap(({ type, text, source }): ContentPart[] => {
    if (text !== undefined) return [{ type: "text", text }];
    if (!source || source.type === "file") return [];
    const { value, mimeType: mediaType = `${type}/*` } = source;
    return [{ type: "media", mediaType, ...(source.type === "url" ? { url: value } : { data: value }) }];
  });
}
