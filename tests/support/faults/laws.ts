/**
 * Invariants of a conversation under faults.
 *
 * @module
 */
import { type Event, type Message, textOf } from "@jizai/jizai";
import type { Journal } from "@jizai/jizai/session/durable";
import { assert, assertEquals } from "@std/assert";
import { placeOf } from "../../../src/core/journal.ts";
import { emittedForm } from "../../../src/protocol/question.ts";
import type { Done } from "../random_agent/agent.ts";
import { isAboutEdit } from "../random_agent/person.ts";
import type { Received } from "./conversation.ts";
import type { Network } from "./network.ts";

/** Checks that a client that read a run received each event once and in order: all of them, or all up to the point where it left. */
export async function checkRun(
  { state: { run = "", at, status, messages }, events }: Received,
  journal: Journal,
): Promise<void> {
  const lines: string[] = [];
  const place = placeOf(run);
  for (;;) {
    const page = place && await journal.read(place.key, place.run, lines.length);
    lines.push(...page?.lines ?? []);
    if (!page || lines.length >= page.last) break;
  }
  const all = lines.map((line) => emittedForm(JSON.parse(line)));
  assertEquals(events, status === "paused" ? all.slice(0, at) : all);
  assertEquals(events.length, at);
  const repaired = events.filter((event) => event.type === "warning" && event.code === "transcript.repaired");
  assertEquals(repaired, []);
  assert(
    messages.filter((shown) => shown.role === "user" && !isAside(textOf(shown))).length <= 1,
    "A prompt is shown twice",
  );
}

/** Returns the messages that were sent to a run while it ran. */
export function aside(what: string): string {
  return `By the way: ${what}`;
}

/** Checks that every accepted message to a run is stored once. */
export function checkAsides(messages: readonly Message[], accepted: readonly string[]): void {
  const kept = promptTexts(messages).filter(isAside);
  assertEquals(kept, [...new Set(kept)]);
  assertEquals(accepted.filter((text) => !kept.includes(text)), []);
}

function isAside(text: string): boolean {
  return text.startsWith(aside(""));
}

/** Returns the person's messages. */
function promptTexts(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => message.role === "user" && message.from === undefined ? [textOf(message)] : []);
}

/** Checks that accepted prompts and answers are stored. */
export function checkPrompts(messages: readonly Message[], received: readonly Received[]): void {
  const prompts = promptTexts(messages).filter((text) => !isAside(text));

  const accepted = received.flatMap(({ events }) =>
    events.flatMap((event) => event.type === "prompt.accepted" ? [textOf(event.prompt)] : [])
  );
  assertEquals(accepted.filter((prompt) => !prompts.includes(prompt)), []);
  const over = received.filter(({ state: { status } }) => status !== "aborted" && status !== "paused");
  assert(prompts.length >= over.length, "A prompt was lost");
  assert(prompts.length <= received.length, "A prompt was taken twice");
}

/** Checks that an answered question is not asked again, unless a hook has changed the input that was the answer. */
export function checkQuestions(answers: Network["taken"], { events }: Received): void {
  const asked = events.flatMap((event, index) =>
    event.type === "run.paused" ? event.questions.map((question) => ({ ...question, at: index + 1 })) : []
  );
  for (const { callId, tool, input, at } of asked) {
    const answer = answers.find((answer) => answer.at === at && answer.callId === callId);
    if (tool === undefined || !answer) continue;
    const isEdit = answer.type === "approve" && answer.input !== undefined;
    const repeated = asked.filter((other) =>
      other.at > at && other.callId === callId && JSON.stringify(other.input) === JSON.stringify(input) &&
      !(isEdit && isAboutEdit(other))
    );
    assertEquals(repeated, []);
  }
}

/** Checks that the messages that a client shows for finished runs equal the transcript. */
export function checkViews(received: readonly Received[], messages: readonly Message[]): void {
  if (received.some(({ state }) => state.status !== "done")) return;
  const shown = received.flatMap(({ state }) => state.messages).flatMap(({ role, parts }) =>
    role === "assistant" ? [parts.map((part) => part.type === "text" ? part.text : "").join("")] : []
  );
  const answers = messages.flatMap((message) => message.role === "assistant" ? [textOf(message)] : []);
  assertEquals(shown.filter(Boolean), answers.filter(Boolean));
}

/**
 * Checks that a client that has read the result of a call reads no other one, and that the transcript has it. A run that was stopped before its calls were
 * saved does not keep them.
 */
export function checkResults(events: readonly Event[], messages: readonly Message[]): void {
  const kept = new Map(
    messages.flatMap((message) =>
      message.role === "tool"
        ? message.results.map(({ inner: _, ...result }) => [result.callId, result]) // clients receive inner calls in events of their own
        : []
    ),
  );
  const shown = events.flatMap((event) => event.type === "tool.finished" ? [event.result] : []);
  const ids = shown.map(({ callId }) => callId);
  assertEquals(ids, [...new Set(ids)]);
  const isStopped = events.at(-1)?.type === "run.aborted";
  const known = isStopped ? shown.filter(({ status }) => status !== "aborted") : shown;
  assertEquals(known, known.map(({ callId }) => kept.get(callId)));
}

/** Checks that an effect that must not repeat happened once, in one process. */
export function checkDone(done: readonly Done[]): void {
  const once = done.filter(({ idempotent }) => !idempotent).map(({ place }) => place);
  assertEquals(once, [...new Set(once)]);
}

/** Checks that a person's answers took effect. */
export function checkAnswers(
  answers: Network["taken"],
  messages: readonly Message[],
  done: readonly Done[],
  interrupted: boolean,
): void {
  const results = new Map(
    messages.flatMap((message) =>
      message.role === "tool" ? message.results.map((result) => [result.callId, result]) : []
    ),
  );
  for (const { callId, type } of new Map(answers.map((answer) => [answer.callId, answer])).values()) {
    const result = callId === undefined ? undefined : results.get(callId);
    if (!result) continue;
    const ran = done.some(({ place }) => place.endsWith(`:${callId}`));
    if (type === "deny") assertEquals([callId, result.status === "ok", ran], [callId, false, false]);
    if (type === "reply") assertEquals([callId, ran], [callId, false]);
    const left = textOf(result).startsWith("The conversation went on");
    if (type === "approve" && !interrupted) assertEquals([callId, left], [callId, false]);
  }
}
