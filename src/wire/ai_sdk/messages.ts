/**
 * Sessions as the messages of a chat, for a page that is reloaded.
 *
 * @module
 */
import type { Question } from "../../protocol/question.ts";
import {
  type AssistantMessage,
  type CallResult,
  callsOf,
  type InnerCall,
  providerResultOf,
  textOf,
  type UserMessage,
} from "../../protocol/message.ts";
import type { AnswerPart, Call } from "../../protocol/part.ts";
import { questionsOf, type Session } from "../../core/session.ts";
import { isForClient } from "../client_tool.ts";
import { messageIdOf, outputOf } from "../frames.ts";
import { type Pause, questionId } from "../wire.ts";
import { contentPart, isInside, partChunk, providerFields, steeringPart } from "./chunks.ts";

/** A message of a chat. */
interface UiMessage {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly metadata?: object;
  readonly parts: object[];
}

/**
 * Returns the messages of a session. The output of the last run is one message, whose id is the run's id, so that a stream of the same run replaces it.
 */
export function messagesOf({ id: session, messages: all, run: current, last }: Session): readonly UiMessage[] {
  const { position, exit } = current ?? {};
  const stored = position && "keep" in position ? all.slice(0, position.keep) : all; // an edit or a new answer replaces the rest
  // not at "incoming": each client that knows the session's id reads this, and `input` hooks may still redact or refuse the prompt
  const prompt = position?.at === "prompt" ? position.messages : [];
  const batch = position?.at === "tools" ? position : undefined;
  const reviewed = batch?.calls.flatMap((record) => record.state === "done" ? [record.result] : []) ?? [];
  const { id: run, before = stored.length } = current ?? { id: last?.run, before: last?.before };
  const asked = questionsOf(current && { run: current }).filter((question) => !isForClient(question));
  const results = [...stored.flatMap((each) => each.role === "tool" ? each.results : []), ...reviewed];
  const inner = new Map(results.map(({ callId, inner }) => [callId, inner]));
  for (const { call, inner: innerCalls } of batch?.calls ?? []) if (innerCalls) inner.set(call.id, innerCalls);
  /** The ids of the calls that are listed. */
  const listed = new Set<string>();
  const innerCalls = [...inner.values()].flatMap((each) => each?.calls ?? []);
  const states = callStates({ results, innerCalls, asked }, { run: current?.id ?? "", pausedAt: current?.events ?? 0 });
  const shown: UiMessage[] = [];

  /** Adds parts to the assistant's message, or begins one. */
  function addParts(index: number, ...parts: readonly object[]): void {
    const newest = shown.at(-1);
    if (newest?.role === "assistant") return void newest.parts.push(...parts);
    const paused = exit && { status: "paused", pausedAt: current?.events ?? 0 };
    const runFields = run !== undefined && index >= before && { id: run, metadata: { run, session, ...paused } };
    shown.push({ id: `${session}.${index}`, role: "assistant", parts: [...parts], ...runFields });
  }

  function addUserMessage(message: UserMessage, index: number): void {
    const id = messageIdOf(session, message, index);
    const isSteering = index > before && shown.at(-1)?.role === "assistant";
    if (isSteering) addParts(index, steeringPart(message, id));
    else shown.push({ id, role: "user", parts: message.parts.map(contentPart) });
  }

  function callPart({ id: toolCallId, name, input }: Call): object {
    const inside = asked.findLast((question) => isInside(question, toolCallId));
    const state = inside ? { state: "output-available", output: reasonOf(inside) } : states.get(toolCallId);
    listed.add(toolCallId);
    return { type: `tool-${name}`, toolCallId, input, state: "input-available", ...state };
  }

  /** Returns the calls inside the subagents of a message, in the order in which clients saw them. */
  function innerParts(message: AssistantMessage): readonly object[] {
    const placed = callsOf(message).flatMap(({ id, name }) => {
      const { calls = [], omitted = 0 } = inner.get(id) ?? {};
      const text = `Earlier calls of ${name} that are not stored: ${omitted}.`;
      const notice = { at: calls[0]?.at ?? 0, part: { type: "data-notice", data: { text } } };
      return [...(omitted > 0 ? [notice] : []), ...calls.map((call) => ({ at: call.at, part: callPart(call) }))];
    });
    return placed.sort((a, b) => a.at - b.at).map(({ part }) => part);
  }

  function answerParts(part: AnswerPart, index: number, all: readonly AnswerPart[]): readonly object[] {
    switch (part.type) {
      case "text":
      case "reasoning":
        return [{ type: part.type, text: part.text, state: "done" }];
      case "call":
        return [callPart(part)];
      case "provider_call": {
        const { toolName: _, ...fields } = { toolName: "", ...providerFields(part) };
        const result = providerResultOf(part, all);
        return [{ ...fields, ...(result && providerFields(result)), type: `tool-${part.name}` }];
      }
      case "provider_result":
        return []; // a part of its call
      default:
        return [partChunk(part, String(index))];
    }
  }

  const messages = [...stored, ...prompt, ...batch ? [batch.message] : []];
  messages.forEach((message, index) => {
    if (message.role === "user" && message.from === undefined) addUserMessage(message, index);
    if (message.role !== "assistant") return;
    addParts(index, { type: "step-start" }, ...message.parts.flatMap(answerParts), ...innerParts(message));
  });
  for (const question of asked) {
    const { callId = "", tool, path = [] } = question;
    if (tool === undefined) addParts(messages.length, { type: "text", text: reasonOf(question), state: "done" });
    else if (path.length > 0 && !listed.has(callId)) { // clients have not seen the call, but are asked about it
      addParts(messages.length, { type: `tool-${tool}`, toolCallId: callId, ...states.get(callId) });
    }
  }
  return shown;
}

/** The results of calls, the calls inside subagents, and the open questions. */
interface Shown {
  readonly results: readonly CallResult[];
  readonly innerCalls: readonly InnerCall[];
  readonly asked: readonly Question[];
}

/** Returns the fields that show the state of each call: its result, or the question about it. */
function callStates(
  { results, innerCalls, asked }: Shown,
  pause: Pause,
): ReadonlyMap<string, object> {
  const states = new Map(results.map((result) => [result.callId, resultState(result)]));
  for (const call of innerCalls) states.set(call.id, innerState(call));
  for (const question of asked) {
    const { callId, tool, input } = question;
    if (callId === undefined || tool === undefined) continue;
    const approval = { id: questionId(callId, pause), requestReason: reasonOf(question) };
    states.set(callId, { state: "approval-requested", input, approval });
  }
  return states;
}

/** Returns the text of a question. */
function reasonOf({ questions }: Question): string {
  return questions.join("\n");
}

/** Returns the fields that show the state of a call inside a subagent, as the stream has shown it. */
function innerState(
  { id: callId, name, status, parts = [], questions = [], answer, pending, provider, output = null }: InnerCall,
) {
  if (provider && (status === "ok" || status === "error")) {
    return providerFields({ type: "provider_result", callId, name, status, output });
  }
  if (provider) return { providerExecuted: true };
  const { approved, reason } = answer ?? {};
  const requestReason = questions.join("\n");
  if (pending && status === undefined) return { state: "output-available", output: requestReason };
  const approval = answer && { approval: { id: questionId(callId, answer), requestReason, approved, reason } };
  if (status === undefined) return approval ? { state: "approval-responded", ...approval } : {};
  if (status === "ok") return { state: "output-available", output: outputOf({ parts }), ...approval };
  if (status === "denied" && approved === false) return { state: "output-denied", ...approval };
  return { state: "output-error", errorText: textOf({ parts }), ...approval };
}

function resultState(result: CallResult): object {
  const { callId: id, status } = result;
  const text = textOf(result);
  if (status === "ok") return { state: "output-available", output: outputOf(result) };
  if (status === "denied") return { state: "output-denied", approval: { id, approved: false, reason: text } };
  return { state: "output-error", errorText: text };
}
