/**
 * Questions to a person as text, for clients that have no other way to answer. The text ends with an id, which the client sends back with its history.
 *
 * @module
 */
import type { PersonAnswer, Question } from "../../protocol/question.ts";
import { isForClient } from "../client_tool.ts";
import { type CallPlace, decodeCallId, encodeCallId } from "./call_id.ts";

/** The questions of one pause. */
export interface Pause {
  readonly session: string;
  readonly pausedAt: number;
  readonly questions: readonly Question[];
}

/** Returns the questions as text; an empty text if there are none for a person. */
export function questionText({ session, pausedAt, questions }: Pause): string {
  const asked = questions.filter((question) => !isForClient(question));
  if (asked.length === 0) return "";
  const texts = asked.map(({ tool, input, questions }) =>
    tool === undefined ? questions.join("\n") : `${questions.join("\n")}\n${tool} ${JSON.stringify(input)}`
  );
  const isApproval = asked.some(({ tool }) => tool !== undefined);
  const hint = isApproval ? `Reply "yes" to approve, or "no" and a reason.` : "Reply with your answer.";
  return `${texts.join("\n\n")}\n\n${hint} (request ${encodeCallId({ session, call: String(pausedAt) })})`;
}

/** Returns the session and the pause of a text that `questionText()` made. */
export function questionPlace(text: string): CallPlace | undefined {
  const [, id] = /\(request (\S+)\)\s*$/.exec(text) ?? [];
  return id === undefined ? undefined : decodeCallId(id);
}

const yes = /^\s*(?:yes|y|ok|okay|approved?)(?:,? please)?[\s.!]*$/i;
const no = /^\s*no\b[\s,.:;!-]*(.*)$/is;

/** Returns the answers that a reply gives. Returns undefined if a call waits for approval and the reply is neither "yes" nor "no": nothing runs without a clear yes. */
export function answersIn(text: string, questions: readonly Question[]): readonly PersonAnswer[] | undefined {
  const reason = no.exec(text)?.[1];
  const isYes = yes.test(text);
  const asked = questions.filter((question) => !isForClient(question));
  if (!isYes && reason === undefined && asked.some(({ tool }) => tool !== undefined)) return undefined;
  return asked.map(({ callId = "", tool }) => {
    if (tool === undefined) return { ...(callId !== "" && { callId }), type: "reply", text };
    return isYes ? { callId, type: "approve" } : { callId, type: "deny", ...(reason && { reason }) };
  });
}
