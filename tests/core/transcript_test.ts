/**
 * The repairs of transcripts, and the messages of application code and hooks that are refused.
 */
import {
  agent,
  type AssistantMessage,
  type CallResult,
  callsOf,
  compacted,
  continueWith,
  memory,
  type Message,
  type Middleware,
  type ToolMessage,
  user,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { repairTranscript } from "../../src/core/transcript.ts";
import { compacting } from "../support/compacting.ts";
import { eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";

function calling(...ids: string[]): AssistantMessage {
  return { role: "assistant", parts: ids.map((id) => ({ type: "call", id, name: "look", input: {} })) };
}

function result(callId: string, text = callId): CallResult {
  return { callId, name: "look", status: "ok", parts: [{ type: "text", text }] };
}

function answering(...ids: string[]): ToolMessage {
  return { role: "tool", results: ids.map((id) => result(id)) };
}

function returning(text: string): AssistantMessage {
  return { role: "assistant", parts: [{ type: "text", text }] };
}

const skipped = (callId: string): CallResult => ({
  callId,
  name: "look",
  status: "skipped",
  parts: [{ type: "text", text: "There is no result." }],
});

/** Asserts that `messages` are repaired to `repaired`, with these problems. */
function assertRepaired(messages: readonly Message[], repaired: readonly Message[], ...problems: string[]) {
  assertEquals(repairTranscript(messages), { messages: repaired, problems });
}

Deno.test("repairTranscript() returns a valid transcript as the same object", () => {
  const valid: readonly Message[] = [
    user("Hi"),
    calling("a", "b"),
    answering("a", "b"),
    user("It is noon.", "context"),
    calling("c"),
    answering("c"),
    returning("Done."),
    user("Thanks"),
    user("And?"),
  ];
  assertStrictEquals(repairTranscript(valid).messages, valid);
  const none: readonly Message[] = [];
  assertStrictEquals(repairTranscript(none).messages, none);
});

Deno.test("repairTranscript() answers a call without a result as skipped", () => {
  const none = { role: "tool", results: [skipped("a")] } as const;
  assertRepaired([calling("a")], [calling("a"), none], "no result for call a");
  assertRepaired([calling("a"), user("Hi")], [calling("a"), none, user("Hi")], "no result for call a");
  assertRepaired(
    [calling("a", "b"), answering("b")],
    [calling("a", "b"), { role: "tool", results: [skipped("a"), result("b")] }],
    "no result for call a",
  );
  assertRepaired([calling("a"), answering()], [calling("a"), none], "no result for call a");
});

Deno.test("repairTranscript() removes a result without a call", () => {
  assertRepaired([user("Hi"), answering("a")], [user("Hi")], "results without calls: a");
  assertRepaired([returning("Hi"), answering("a", "b")], [returning("Hi")], "results without calls: a, b");
  assertRepaired(
    [calling("a"), answering("x", "a", "y")],
    [calling("a"), answering("a")],
    "a result for call x, which was not made",
    "a result for call y, which was not made",
  );
  assertRepaired(
    [calling("a"), answering("a"), answering("a")],
    [calling("a"), answering("a")],
    "results without calls: a",
  );
});

Deno.test("repairTranscript() removes a second result, and sorts results", () => {
  const first = [calling("a"), answering("a")];
  const second: Message[] = [calling("a"), { role: "tool", results: [result("a"), result("a", "again")] }];
  assertRepaired(second, first, "a second result for call a");
  assertRepaired(
    [calling("a", "b"), answering("b", "a")],
    [calling("a", "b"), answering("a", "b")],
    "results out of order",
  );
  assertRepaired(
    [answering("x"), calling("a", "b"), answering("b", "a")],
    [calling("a", "b"), answering("a", "b")],
    "results without calls: x",
    "results out of order",
  );
});

Deno.test("repairTranscript() removes a second call with the same id, and a message that is then empty", () => {
  assertRepaired(
    [calling("a", "a", "b"), answering("a", "b")],
    [calling("a", "b"), answering("a", "b")],
    "a second call a",
  );
  assertRepaired(
    [calling("a"), answering("a"), calling("a"), answering("a")],
    [calling("a"), answering("a")],
    "a second call a",
    "results without calls: a",
  );
});

/** A generator of the same pseudorandom numbers in every run, from 0 to below `end`. */
function dice(seed: number) {
  let state = seed;
  return (end: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * end);
  };
}

function garbage(roll: (end: number) => number): Message[] {
  const id = () => `c${roll(6)}`;
  const some = <T>(make: () => T): T[] => Array.from({ length: roll(4) }, make);
  return Array.from({ length: roll(9) }, (): Message => {
    const kind = roll(4);
    if (kind === 0) return user(`u${roll(100)}`);
    if (kind === 1) return answering(...some(id));
    if (kind === 2) return calling(...some(id));
    return { role: "assistant", parts: [...returning("Hm.").parts, ...calling(...some(id)).parts] };
  });
}

/** The rule of a valid transcript, implemented in another way than in src. */
function isValid(messages: readonly Message[]): boolean {
  const ids = messages.flatMap((message) => message.role === "assistant" ? callsOf(message).map(({ id }) => id) : []);
  return new Set(ids).size === ids.length && messages.every((message, index) => {
    const before = messages[index - 1];
    if (message.role === "tool") return before?.role === "assistant" && callsOf(before).length > 0;
    if (message.role === "user" || callsOf(message).length === 0) return true;
    const after = messages[index + 1];
    const answered = after?.role === "tool" ? after.results.map(({ callId }) => callId) : [];
    return JSON.stringify(answered) === JSON.stringify(callsOf(message).map(({ id }) => id));
  });
}

Deno.test("repairTranscript() makes all messages valid, changes nothing the second time, and loses nothing else", () => {
  const roll = dice(7);
  let broken = 0;
  for (let round = 0; round < 3_000; round++) {
    const messages = garbage(roll);
    const reported = JSON.stringify(messages);
    const { messages: repaired, problems } = repairTranscript(messages);
    assert(isValid(repaired), reported);
    assertEquals(problems.length === 0, isValid(messages), reported);
    if (problems.length === 0) assertStrictEquals(repaired, messages);
    else broken++;
    assertStrictEquals(repairTranscript(repaired).messages, repaired);
    const texts = (all: readonly Message[]) => lines(all).filter((line) => /^(user|assistant) /.test(line));
    assertEquals(texts(repaired), texts(messages));
    assertEquals(JSON.stringify(messages), reported);
  }
  assert(broken > 1_000 && broken < 2_900, `${broken} of 3,000`);
});

Deno.test("messages that a hook breaks are repaired, and the warning names the middleware", async () => {
  const orphan = { role: "tool", results: [result("x")] } as const;
  const warnings = async (use: Parameters<typeof agent>[0]["use"] & object) => {
    const model = scripted("One.", "Two.");
    const run = compacting({ model, use, limits: { context: 1 } }).run("Hi");
    const events = await eventsOfRun(run);
    assert(model.requests.every(({ messages }) => isValid(messages)));
    assert(isValid((await run.result).messages));
    return events.filter(({ type }) => type === "warning");
  };
  const repaired = { type: "warning", code: "transcript.repaired" } as const;
  assertEquals(
    await warnings([{ name: "outer", model: (_, next) => next() }, {
      name: "request",
      model: (ctx, next) => next({ request: { messages: [...ctx.request.messages, orphan] } }),
    }]),
    [{
      ...repaired,
      message: "The messages were not valid: results without calls: x",
      point: "model",
      middleware: "request",
    }],
  );
  assertEquals(
    await warnings([{ name: "outer", compact: (_, next) => next() }, {
      name: "forget",
      compact: () => Promise.resolve(compacted([calling("x"), user("Hi")])),
    }]),
    [{
      ...repaired,
      message: "The messages were not valid: no result for call x",
      point: "compact",
      middleware: "forget",
    }],
  );
  assertEquals(
    await warnings([{ name: "outer", turn: (_, next) => next() }, {
      name: "answer",
      turn: async (ctx, next) => {
        if (ctx.index > 1) return await next();
        const response = { finish: "calls", usage: { input: 0, output: 0 }, model: "mine", attempts: 0 } as const;
        return { response: { ...response, parts: calling("x").parts }, results: [] };
      },
    }]),
    [{
      ...repaired,
      message: "The messages were not valid: no result for call x",
      point: "turn",
      middleware: "answer",
    }],
  );
});

// Messages that application code passes: one that no provider could read is refused where it is given.

const expected = 'expected messages with `role` and `parts`, such as user("Hi")';

/** Values that code without types may take for messages. */
const noMessages: readonly unknown[] = [
  "Hi",
  null,
  { role: "user", content: "Hi" },
  { role: "user", parts: "Hi" },
  { role: "user", parts: ["Hi"] },
  { role: "person", parts: [{ type: "text", text: "Hi" }] },
  { role: "tool", parts: [] },
];

for (const value of noMessages as readonly never[]) {
  const title = JSON.stringify(value);
  const lists: Readonly<Record<string, Middleware>> = {
    input: { input: (_, next) => next({ messages: [value] }) },
    prompt: { prompt: (_, next) => next({ prompt: value }) },
    turn: { turn: (_, next) => next({ transcript: [value] }) },
    model: { model: ({ request }, next) => next({ request: { ...request, messages: [value] } }) },
  };

  for (const [point, use] of Object.entries(lists)) {
    Deno.test(`${point}: next() refuses the message ${title}, and the model is not asked`, async () => {
      const store = memory();
      const model = scripted("Hello!", "Again.");
      const assistant = agent({ model, use: [{ ...use, name: "mine" }] });
      const { status, error } = await assistant.run({ prompt: "Hi", session: "s", store, onError: () => {} }).result;
      const complaint = `TypeError: Cannot use the change of "mine" at ${point}: ${expected}`;
      assertEquals([status, String(error), model.requests.length], ["failed", complaint, 0]);
    });
  }

  Deno.test(`stop and compact: an answer with the message ${title} is refused, except for a text at stop`, async () => {
    const continued = scripted("Hello!", "Again.");
    const more: Middleware = {
      name: "mine",
      stop: (_, next) => continued.requests.length === 1 ? Promise.resolve(continueWith(user("Go on"), value)) : next(),
    };
    const { error } = await agent({ model: continued, use: [more] }).run({ prompt: "Hi", onError: () => {} }).result;
    const shorten: Middleware = { name: "mine", compact: () => Promise.resolve(compacted([value])) };
    const errors: string[] = [];
    const options = { prompt: "Hi", onError: (error: unknown) => void errors.push(String(error)) };
    await compacting({ model: scripted("Hello!"), use: [shorten], limits: { context: 1 } }).run(options).result;
    const complaint = (point: string) => `TypeError: Cannot use the answer of "mine" at ${point}: ${expected}`;
    const isText = typeof value === "string"; // continueWith() makes a message of a text
    assertEquals([String(error), continued.requests.length], isText ? ["undefined", 2] : [complaint("stop"), 1]);
    assertEquals(errors.slice(0, 1), [complaint("compact")]);
  });

  Deno.test(`run() refuses the message ${title}`, () => {
    const assistant = agent({ model: scripted() });
    const messages: readonly Message[] = [value, user("Hi")];
    assertThrows(() => assistant.run({ messages }), TypeError, `Cannot run: ${expected}`);
  });
}

Deno.test("prompt: next() refuses a prompt that is not the person's", async () => {
  const answer: Message = { role: "assistant", parts: [{ type: "text", text: "Hi" }] };
  const use: Middleware = { name: "mine", prompt: (_, next) => next({ prompt: answer as never }) };
  const { error } = await agent({ model: scripted("Hello!"), use: [use] }).run({ prompt: "Hi", onError: () => {} })
    .result;
  assertEquals(String(error), `TypeError: Cannot use the change of "mine" at prompt: ${expected}`);
});

Deno.test("subagent: next() refuses a prompt that is not the person's, and the subagent does not run", async () => {
  const answer: Message = { role: "assistant", parts: [{ type: "text", text: "Hi" }] };
  const use: Middleware = { name: "mine", subagent: (_, next) => next({ prompt: answer as never }) };
  const model = scripted("Hello!");
  const child = agent({ name: "helper", description: "Helps", model });
  const boss = agent({
    model: scripted({ calls: [["helper", { prompt: "Go" }]] }, "Done."),
    tools: [asTool(child)],
    use: [use],
  });
  const errors: string[] = [];
  await boss.run({ prompt: "Hi", onError: (error) => void errors.push(String(error)) }).result;
  const complaint = `TypeError: Cannot use the change of "mine" at subagent: ${expected}`;
  assertEquals([errors[0], model.requests.length], [complaint, 0]);
});

Deno.test("run() refuses a prompt that is no text, and nothing at all", () => {
  const { run } = agent({ model: scripted() });
  const untyped = run as (given?: unknown) => unknown; // as code without types calls it
  for (const given of [undefined, null, 5, {}, { prompt: 5 }, { prompt: { role: "user" } }, { messages: "Hi" }]) {
    assertThrows(() => untyped(given), TypeError, "Cannot run: expected a prompt, or messages of which the last is");
  }
});
