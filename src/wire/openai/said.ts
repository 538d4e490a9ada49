/**
 * What a client says, whichever of the two ways it says it: a conversation that it holds, or what its calls came to.
 *
 * @module
 */
import { inputOf } from "../../core/hearing.ts";
import {
  type AnswerPart,
  type CallPart,
  type CallResult,
  callsOf,
  type Message,
  user,
  type UserMessage,
} from "../../protocol/message.ts";
import type { PersonAnswer, Suggestion } from "../../protocol/question.ts";
import { clientTools, type DeclaredTool } from "../client_tool.ts";
import { wrong } from "../shape.ts";
import type { Talk } from "../wire.ts";
import { placeOf } from "./call_id.ts";

/** One entry of a conversation as a client holds it. */
export type Entry =
  | UserMessage
  | { readonly role: "assistant"; readonly parts: readonly AnswerPart[] }
  | Outcome;

/** What became of a call: what it came to, or what a person says of it. */
export interface Outcome {
  readonly role: "outcome";
  /** The call, as the client has it. */
  readonly id: string;
  readonly answer: Suggestion;
}

/** Says what became of a call. */
export function outcome(id: string, answer: Suggestion): Outcome {
  return { role: "outcome", id, answer };
}

/** A conversation, and how it is to go on. */
export interface Conversation {
  readonly entries: readonly Entry[];
  /** Where they are in the request, for whoever is told that they are wrong. */
  readonly field: string;
  /** The session that goes on. Default: one of its own, which the entries are the whole of. */
  readonly session?: string | undefined;
  /** Whether that session has to be there. Default: false. */
  readonly known?: boolean | undefined;
  readonly tools: readonly DeclaredTool[];
}

/** What a client talks about: answers what its calls came to, where it says that last, and else prompts. */
export function talkOf({ entries, field, session, known, tools }: Conversation): Omit<Talk, "type" | "reply"> {
  const last = entries.slice(entries.findLastIndex(({ role }) => role === "assistant") + 1);
  const outcomes = last.filter((entry) => entry.role === "outcome");
  const asker = outcomes.map(({ id }) => placeOf(id)?.session).find(Boolean);
  if (asker !== undefined && outcomes.length === last.length) {
    return {
      session: asker,
      say: ({ questions, pause }) => ({
        answers: outcomes.flatMap((entry) => answerOf(entry, pause)),
        tools: clientTools(tools, questions),
      }),
    };
  }
  const messages = messagesOf(session === undefined ? entries : last);
  if (messages.at(-1)?.role !== "user") throw wrong(field, "the last of them to be the person's");
  return { session, known, say: () => ({ messages, tools: clientTools(tools) }) };
}

/** What an outcome answers; an approval of another pause answers nothing. */
function answerOf({ id, answer }: Outcome, pause: number): PersonAnswer[] {
  const { call = "" } = placeOf(id) ?? {};
  if (answer.type === "reply") return [{ ...answer, callId: call }];
  const [callId = "", asked] = call.split(/@(?=\d+$)/);
  return asked === String(pause) ? [{ ...answer, callId }] : [];
}

/** Entries as messages: what a model said in pieces is one of them, and so is what its calls came to. */
function messagesOf(entries: readonly Entry[]): readonly Message[] {
  const messages: Message[] = [];
  const names = new Map<string, string>();
  for (const entry of entries) {
    const before = messages.at(-1);
    if (entry.role === "user") messages.push(entry);
    else if (entry.role === "assistant") {
      for (const { id, name } of callsOf(entry)) names.set(id, name);
      if (before?.role === "assistant") messages.splice(-1, 1, { ...before, parts: [...before.parts, ...entry.parts] });
      else messages.push(entry);
    } else if (entry.answer.type === "reply") {
      const callId = ours(entry.id);
      const result: CallResult = {
        callId,
        name: names.get(callId) ?? "",
        status: "ok",
        parts: user(entry.answer.text).parts,
      };
      if (before?.role === "tool") messages.splice(-1, 1, { ...before, results: [...before.results, result] });
      else messages.push({ role: "tool", results: [result] });
    }
  }
  return messages;
}

/** The id that a model gave a call. */
function ours(id: string): string {
  return placeOf(id)?.call ?? id;
}

/** A call as a client holds it, whose input is a text. */
export function callOf(outer: string, name: string, text: string): CallPart {
  return { type: "call", id: ours(outer), name, ...inputOf(text) };
}
