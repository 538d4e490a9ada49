/**
 * Messages that application code passes: one that no provider could read is refused where it is given.
 *
 * @module
 */
import { agent, compacted, continueWith, memory, type Message, type Middleware, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { assertEquals, assertThrows } from "@std/assert";
import { compacting } from "../support/compacting.ts";

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
