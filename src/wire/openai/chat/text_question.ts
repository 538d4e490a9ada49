/**
 * Questions to a person as text, for clients that have no other way to answer. The text ends with an id, which the client sends back with its history.
 *
 * @module
 */
import { textOf } from "../../../protocol/message.ts";
import type { PersonAnswer, Question } from "../../../protocol/question.ts";
import { pauseId } from "../../answer.ts";
import type { PendingQuestions } from "../../wire.ts";
import { clientTools, isForClient } from "../../client_tool.ts";
import type { CallPlace } from "../call_id.ts";
import { chatInputOf, type Conversation, type ConversationInput } from "../conversation.ts";

/** The questions of one pause. */
export interface AskedQuestions extends PendingQuestions {
  readonly session: string;
}

/** Begins the id: the session's id, the pause, and the length of the session's id, which comes last because the text is read from its end. */
const idStart = "(request ";

/** Returns the questions as text; an empty text if there are none for a person. */
export function questionText({ session, questions, ...pause }: AskedQuestions): string {
  const asked = questions.filter((question) => !isForClient(question));
  if (asked.length === 0) return "";
  const texts = asked.map(({ tool, input, questions }) =>
    tool === undefined ? questions.join("\n") : `${questions.join("\n")}\n${tool} ${JSON.stringify(input)}`
  );
  const isApproval = asked.some(({ tool }) => tool !== undefined);
  const hint = isApproval ? `Reply "yes" to approve, or "no" and a reason.` : "Reply with your answer.";
  return `${texts.join("\n\n")}\n\n${hint} ${idStart}${session}.${pauseId(pause)}.${session.length})`;
}

/** Returns the session and the pause of a text that `questionText()` made. */
function questionPlace(text: string): CallPlace | undefined {
  const match = /\.([^.]*)\.(\d+)\)\s*$/.exec(text);
  if (!match) return undefined;
  const [, call = "", length] = match;
  const end = match.index;
  const start = end - Number(length);
  return text.slice(0, start).endsWith(idStart) ? { session: text.slice(start, end), call } : undefined;
}

const yes = /^\s*(?:yes|y|ok|okay|approved?)(?:,? please)?[\s.!]*$/i;
const no = /^\s*no\b[\s,.:;!-]*(.*)$/is;

/** Returns the answers that a reply gives. Returns undefined if a call waits for approval and the reply is neither "yes" nor "no": nothing runs without a clear yes. */
function answersIn(text: string, questions: readonly Question[]): readonly PersonAnswer[] | undefined {
  const reason = no.exec(text)?.[1];
  const isYes = yes.test(text);
  const asked = questions.filter((question) => !isForClient(question));
  if (!isYes && reason === undefined && asked.some(({ tool }) => tool !== undefined)) return undefined;
  return asked.map(({ callId = "", tool }) => {
    if (tool === undefined) return { ...(callId !== "" && { callId }), type: "reply", text };
    return isYes ? { callId, type: "approve" } : { callId, type: "deny", ...(reason && { reason }) };
  });
}

/**
 * Returns the input of a conversation whose client holds the history and can answer only by text.
 * The input is answers if the last message replies to a question of `questionText()`, and otherwise that of `chatInputOf()`.
 */
export function textInputOf(conversation: Conversation): ConversationInput {
  const { entries, session, tools, answerFormat } = conversation;
  const input = chatInputOf(conversation);
  const asking = entries.findLastIndex(({ role }) => role === "assistant");
  const [question, ...replies] = entries.slice(Math.max(0, asking));
  const place = question?.role === "assistant" ? questionPlace(textOf(question)) : undefined;
  const messages = replies.filter((entry) => entry.role === "user");
  const reply = messages.at(-1);
  if (!place || !reply || messages.length < replies.length || place.session !== (session ?? place.session)) {
    return input;
  }
  return {
    session: place.session,
    input(pending) {
      const { questions } = pending;
      const isOpen = questions.length > 0 && place.call === pauseId(pending);
      if (!isOpen) return { newSession: session === undefined, ...input.input(pending) };
      const answers = answersIn(textOf(reply), questions);
      const forClient = clientTools(tools, questions);
      return { ...(answers ? { answers } : { messages }), tools: forClient, answerFormat };
    },
  };
}
