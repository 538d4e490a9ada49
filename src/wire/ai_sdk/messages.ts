/**
 * Sessions as the messages of a chat: what `useChat` begins with on a page that was loaded anew.
 *
 * @module
 */
import type { Question } from "../../protocol/question.ts";
import { type AnswerPart, type CallResult, textOf, type UserMessage } from "../../protocol/message.ts";
import type { Session } from "../../protocol/session.ts";
import { isForClient } from "../client_tool.ts";
import { outputOf } from "../frames.ts";
import { agentsOf, approvalId, contentOf, steering } from "./parts.ts";

/** A message of a chat. */
interface UiMessage {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly metadata?: object;
  readonly parts: object[];
}

/** The messages of a session. All that its last run says is one of them, whose id is the run's: where that is streamed too, it takes its place. */
export function messagesOf({ id: session, messages: kept, run: now, last }: Session): readonly UiMessage[] {
  const { questions = [], prompt = [], batch } = now?.pending ?? {};
  const { id: run, before = kept.length } = now ?? { id: last?.run, before: last?.before };
  const asked = questions.filter((question) => !isForClient(question));
  const states = statesOf([
    ...kept.flatMap((each) => each.role === "tool" ? each.results : []),
    ...batch?.results ?? [],
  ]);
  for (const question of asked) ask(question, now?.events ?? 0, states);
  const told: UiMessage[] = [];

  /** Has the agent say something, in one message with all that it says in a row. */
  function say(index: number, ...parts: readonly object[]): void {
    const newest = told.at(-1);
    if (newest?.role === "assistant") return void newest.parts.push(...parts);
    const own = run !== undefined && index >= before && { id: run, metadata: { run, session } };
    told.push({ id: `${session}.${index}`, role: "assistant", parts: [...parts], ...own });
  }

  function hear(message: UserMessage, index: number): void {
    const meanwhile = index > before && told.at(-1)?.role === "assistant";
    if (meanwhile) say(index, steering(message, `${session}.${index}`));
    else told.push({ id: `${session}.${index}`, role: "user", parts: message.parts.map(contentOf) });
  }

  function partOf(part: AnswerPart): object {
    if (part.type !== "call") return { type: part.type, text: part.text, state: "done" };
    const { id: toolCallId, name, input } = part;
    return { type: `tool-${name}`, toolCallId, input, state: "input-available", ...states.get(toolCallId) };
  }

  const messages = [...kept, ...prompt, ...batch ? [batch.message] : []];
  messages.forEach((message, index) => {
    if (message.role === "user" && message.from === undefined) hear(message, index);
    if (message.role === "assistant") say(index, { type: "step-start" }, ...message.parts.map(partOf));
  });
  for (const { callId = "", tool, questions } of asked) {
    if (tool === undefined) say(messages.length, { type: "text", text: questions.join("\n"), state: "done" });
    else if (callId.includes("/")) {
      say(messages.length, { type: `tool-${tool}`, toolCallId: callId, ...states.get(callId) });
    }
  }
  return told;
}

/** What became of calls, as a part says it. */
function statesOf(results: readonly CallResult[]): Map<string, object> {
  return new Map(results.map((result) => [result.callId, stateOf(result)]));
}

function stateOf(result: CallResult): object {
  const { callId: id, status } = result;
  const said = textOf(result);
  if (status === "ok") return { state: "output-available", output: outputOf(result) };
  if (status === "denied") return { state: "output-denied", approval: { id, approved: false, reason: said } };
  return { state: "output-error", errorText: said };
}

/** Says of a call that a person is asked about it. */
function ask({ callId, tool, input, questions }: Question, pause: number, states: Map<string, object>): void {
  if (callId === undefined || tool === undefined) return;
  const requestReason = questions.join("\n");
  const approval = { id: approvalId(callId, pause), requestReason };
  states.set(callId, { state: "approval-requested", input, approval });
  for (const agent of agentsOf(callId)) states.set(agent, { state: "output-available", output: requestReason });
}
