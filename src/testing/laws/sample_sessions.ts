/**
 * Sample sessions for the laws of stores and logs.
 *
 * @module
 */
import { type Message, user } from "../../protocol/message.ts";
import type { Session } from "../../core/session.ts";
import type { Sessions, StoreAdapter } from "../../core/store.ts";
import type { RunSnapshot } from "../../core/position.ts";

/** The store that laws test: an adapter, and the operations on whole sessions that are made of its operations. */
export interface TestedStore extends StoreAdapter, Sessions {}

/** Returns a session with one message. */
export function sessionWith(id: string, text: string, version = 0): Session {
  return { id, version, messages: [user(text)] };
}

/** Text with characters that need escaping somewhere. */
export const oddText =
  `"quoted" 'quoted' \\ \\n \n \r\n \t \0 \u2028 \ufeff \ud83d \ude00 é e\u0301 漢字 👩‍👩‍👧‍👦 </script> ?1 :a NULL %s {{ }}`;

/** Texts that are longer than the values of some databases. A piece of one may end within a character of two, three or four bytes. */
export const long: readonly string[] = [
  "x".repeat(70_000),
  `.${"😀".repeat(150_000)}`,
  "ж漢😀 ".repeat(130_000),
  `${"ж漢😀 ".repeat(130_000)}and more`,
  "x".repeat(2_500_000),
  "漢",
];

const messages: readonly Message[] = [
  {
    role: "user",
    parts: [{ type: "text", text: oddText }, { type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" }],
  },
  {
    role: "assistant",
    parts: [
      {
        type: "reasoning",
        text: "Hm.",
        meta: { signature: "abc", nested: [1, 1.5e300, -0.25, null, true, { "": [] }] },
      },
      { type: "text", text: "I look." },
      { type: "call", id: "call_1", name: "look", input: { at: ["here", {}] } },
      { type: "call", id: "call_2", name: "look", input: "{", malformed: "Unexpected end" },
    ],
  },
  {
    role: "tool",
    results: [
      { callId: "call_1", name: "look", status: "ok", parts: [{ type: "text", text: "" }] },
      { callId: "call_2", name: "look", status: "error", parts: [] },
    ],
  },
  {
    role: "user",
    parts: [{ type: "media", mediaType: "text/plain", url: "https://example.com/?a=b#c" }],
    from: "inject",
  },
];

const run: RunSnapshot = {
  id: "run_1",
  startedAt: 1_700_000_000_000,
  position: {
    at: "tools",
    turn: 2,
    message: { role: "assistant", parts: [{ type: "call", id: "call_3", name: "pay", input: { sum: 5 } }] },
    calls: [
      {
        call: { id: "call_3", name: "pay", input: { sum: 5 } },
        state: "waiting",
        questions: [{ callId: "call_3", tool: "pay", input: { sum: 5 }, questions: ["Run pay?"] }],
        saved: { deep: [[[]]] },
      },
      {
        call: { id: "call_4", name: "look", input: "{", malformed: "Unexpected end", incomplete: true },
        state: "done",
        result: { callId: "call_4", name: "look", status: "denied", parts: [], context: ["Seen"] },
      },
    ],
  },
  exit: {
    status: "paused",
    questions: [{ callId: "call_3", tool: "pay", input: { sum: 5 }, questions: ["Run pay?"] }, {
      questions: ["Go on?"],
    }],
  },
  finish: "length",
  counters: { turns: 2, calls: 3, continuations: 1, batches: 2, outputs: 0, cuts: 1 },
  usage: { input: 100, output: 20, cached: 3 },
  state: [["limit.used", 3], ["seen", { deep: [[[]]], "__proto_": null }], ["none", null]],
  answers: [],
  before: 1,
  events: 42,
};

/** Returns a session whose run is in progress. Its messages are longer than the values of some databases. */
export function runningSession(id: string, version = 0): Session {
  const { exit: _, ...running } = run;
  return { ...sessionWith(id, "x".repeat(200_000), version), run: running };
}

/** Sessions with every field, with no optional field, and with unusual text. */
export const sessions: readonly Session[] = [
  { id: "full", version: 0, messages, run },
  { id: "ended", version: 0, messages },
  { id: "empty", version: 0, messages: [] },
  sessionWith("oddText", oddText),
  sessionWith(`an "oddText" id's\n漢字 😀 / : %`, "Hi"),
];
