import {
  type AssistantMessage,
  type CallResult,
  callsOf,
  type Message,
  textOf,
  type ToolMessage,
  user,
} from "@jizai/jizai";
import { repairTranscript } from "@jizai/jizai/wire";
import { assert, assertEquals, assertStrictEquals } from "@std/assert";

function calling(...ids: string[]): AssistantMessage {
  return { role: "assistant", parts: ids.map((id) => ({ type: "call", id, name: "look", input: {} })) };
}

function result(callId: string, text = callId): CallResult {
  return { callId, name: "look", status: "ok", parts: [{ type: "text", text }] };
}

function results(...ids: string[]): ToolMessage {
  return { role: "tool", results: ids.map((id) => result(id)) };
}

function skipped(callId: string): CallResult {
  return { callId, name: "look", status: "skipped", parts: [{ type: "text", text: "There is no result." }] };
}

const saying: AssistantMessage = { role: "assistant", parts: [{ type: "text", text: "Done." }] };

Deno.test("repairTranscript() returns a valid transcript itself", () => {
  const valid: readonly Message[] = [
    user("Hi"),
    calling("a", "b"),
    results("a", "b"),
    user("It is noon.", "context"),
    calling("c"),
    results("c"),
    saying,
    user("Thanks"),
  ];
  assertStrictEquals(repairTranscript(valid).messages, valid);
  const empty: readonly Message[] = [];
  assertStrictEquals(repairTranscript(empty).messages, empty);
});

const repairs: readonly (readonly [what: string, messages: Message[], repaired: Message[], problems: string[]])[] = [
  [
    "adds a skipped result to a call without one, at the end",
    [calling("a")],
    [calling("a"), { role: "tool", results: [skipped("a")] }],
    ["no result for call a"],
  ],
  [
    "adds a skipped result to a call without one, before the next message",
    [calling("a"), user("Hi")],
    [calling("a"), { role: "tool", results: [skipped("a")] }, user("Hi")],
    ["no result for call a"],
  ],
  [
    "adds a skipped result beside a real one",
    [calling("a", "b"), results("b")],
    [calling("a", "b"), { role: "tool", results: [skipped("a"), result("b")] }],
    ["no result for call a"],
  ],
  ["drops results without calls", [user("Hi"), results("a")], [user("Hi")], ["results without calls: a"]],
  [
    "drops results of calls that were not made",
    [calling("a"), results("x", "a", "y")],
    [calling("a"), results("a")],
    ["a result for call x, which was not made", "a result for call y, which was not made"],
  ],
  [
    "drops a second result",
    [calling("a"), { role: "tool", results: [result("a"), result("a", "again")] }],
    [calling("a"), results("a")],
    ["a second result for call a"],
  ],
  [
    "orders results as their calls",
    [calling("a", "b"), results("b", "a")],
    [calling("a", "b"), results("a", "b")],
    ["results out of order"],
  ],
  [
    "drops a second call with the same id",
    [calling("a", "a", "b"), results("a", "b")],
    [calling("a", "b"), results("a", "b")],
    ["a second call a"],
  ],
  [
    "drops a message that has nothing but repeated calls",
    [calling("a"), results("a"), calling("a"), results("a")],
    [calling("a"), results("a")],
    ["a second call a", "results without calls: a"],
  ],
];
for (const [what, messages, repaired, problems] of repairs) {
  Deno.test(`repairTranscript() ${what}`, () => {
    assertEquals(repairTranscript(messages), { messages: repaired, problems });
  });
}

/** Returns numbers from 0 to below `end`, the same in every run. */
function dice(seed: number): (end: number) => number {
  let state = seed;
  return (end) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * end);
  };
}

function randomTranscript(roll: (end: number) => number): Message[] {
  const ids = () => Array.from({ length: roll(4) }, () => `c${roll(6)}`);
  const kinds: (() => Message)[] = [
    () => user(`u${roll(100)}`),
    () => results(...ids()),
    () => calling(...ids()),
    () => ({ role: "assistant", parts: [...saying.parts, ...calling(...ids()).parts] }),
  ];
  return Array.from({ length: roll(9) }, () => kinds[roll(4)]?.() ?? saying);
}

/** The rule for a valid transcript, written independently of the implementation. */
function isValid(messages: readonly Message[]): boolean {
  const ids = messages.flatMap((message) => message.role === "assistant" ? callsOf(message).map(({ id }) => id) : []);
  return new Set(ids).size === ids.length && messages.every((message, index) => {
    const previous = messages[index - 1];
    if (message.role === "tool") return previous?.role === "assistant" && callsOf(previous).length > 0;
    if (message.role === "user" || callsOf(message).length === 0) return true;
    const next = messages[index + 1];
    const answered = next?.role === "tool" ? next.results.map(({ callId }) => callId) : [];
    return JSON.stringify(answered) === JSON.stringify(callsOf(message).map(({ id }) => id));
  });
}

Deno.test("repairTranscript() makes all messages valid, keeps all text, and changes nothing the second time", () => {
  const roll = dice(7);
  let invalid = 0;
  for (let round = 0; round < 3_000; round++) {
    const messages = randomTranscript(roll);
    const before = JSON.stringify(messages);
    const { messages: repaired, problems } = repairTranscript(messages);
    assert(isValid(repaired), before);
    assertEquals(problems.length === 0, isValid(messages), before);
    if (problems.length > 0) invalid++;
    assertStrictEquals(repairTranscript(repaired).messages, repaired);
    const texts = (all: readonly Message[]) =>
      all.flatMap((each) => each.role === "tool" ? [] : [textOf(each)]).join("");
    assertEquals(texts(repaired), texts(messages));
    assertEquals(JSON.stringify(messages), before);
  }
  assert(invalid > 1_000 && invalid < 2_900, `${invalid} of 3,000`);
});
