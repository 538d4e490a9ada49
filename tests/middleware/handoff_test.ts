import { agent, memory, ModelError, tool } from "@jizai/jizai";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { handoff } from "@jizai/jizai/middleware/handoff";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { lines } from "../support/transcript_lines.ts";

const named = (name: string) => tool({ name, description: name, input: z.object({}), execute: () => `Did ${name}.` });
const [greet, pay, search, look] = ["greet", "pay", "search", "look"].map(named);
if (!greet || !pay || !search || !look) throw new Error("Cannot create the tools");

const refunds = { name: "refunds", description: "Refunds orders", instructions: "You refund.", tools: [pay, look] };
const experts = {
  name: "experts",
  description: "Knows all",
  instructions: () => Promise.resolve("You know."),
  tools: [look],
};
const transfer = (to: string) => ["transfer", { agent: to }] as const;

/** Runs an agent that can hand over, with this script. */
async function run(script: readonly ScriptedAnswer[], options: Parameters<typeof handoff>[1] = {}) {
  const model = scripted(...script);
  const tools = [greet, search].filter((each) => each !== undefined);
  const store = memory();
  const shown: unknown[] = [];
  const assistant = agent({
    model,
    instructions: "You greet.",
    tools,
    use: [permissions({ deny: ["pay"] }), handoff([refunds, experts], options)],
    observe: (event) => void (event.type === "data" && shown.push([event.name, event.data])),
  });
  const { messages, session } = await assistant.run({ prompt: "Hi", session: "s", store }).result;
  const asked = () =>
    model.requests.map(({ instructions, tools }) => [instructions, tools.map(({ name }) => name).join(" ")]);
  return { model, messages, asked, shown, again: () => assistant.run({ prompt: "And?", session, store }).result };
}

const main = ["You greet.", "greet search transfer"];

Deno.test("handoff() obeys the laws of middleware", async () => {
  await testMiddleware(() => handoff([experts]), { calls: [["transfer", { agent: "experts" }]] });
});

Deno.test("handoff() changes the instructions and the tools from the next turn on, and can transfer further and back", async () => {
  const { asked, shown, messages } = await run([
    { calls: [transfer("refunds")] },
    { calls: [transfer("experts")] },
    { calls: [transfer("main")] },
    "Bye.",
  ]);
  assertEquals(asked(), [main, ["You refund.", "transfer pay look"], ["You know.", "transfer look"], main]);
  assertEquals(shown, ["refunds", "experts", "main"].map((name) => ["agent", { id: "agent", agent: name }]));
  assertEquals(
    lines(messages)[2],
    `ok The conversation was transferred. You are now the agent "refunds". Continue with the user's request.`,
  );
});

Deno.test("handoff() keeps the specialist for the next prompt of the session", async () => {
  const { asked, again } = await run([{ calls: [transfer("experts")] }, "Ask.", "Answer."]);
  await again();
  assertEquals(asked().slice(1), Array(2).fill(["You know.", "transfer look"]));
});

Deno.test("handoff() uses the model of the specialist, and shares the listed tools", async () => {
  const own = scripted("From the expert.");
  const model = scripted({ calls: [transfer("expert")] });
  const expert = { name: "expert", description: "Knows", instructions: "You know.", model: own };
  const assistant = agent({ model, tools: [search], use: [handoff([expert], { shared: ["search"] })] });
  assertEquals((await assistant.run("Hi").result).text, "From the expert.");
  assertEquals(own.requests[0]?.tools.map(({ name }) => name), ["search", "transfer"]);
});

Deno.test("handoff() tells the specialist to give the structured answer of the agent", async () => {
  const model = scripted({ calls: [transfer("refunds")] }, '{"amount":1}');
  const output = z.object({ amount: z.number() });
  const assistant = agent({ model, instructions: "You greet.", output, use: [handoff([refunds])] });
  assertEquals((await assistant.run("Hi").result).output, { amount: 1 });
  const [own = "", specialist] = model.requests.map(({ instructions }) => instructions);
  assertEquals(specialist, own.replace("You greet.", "You refund."));
});

Deno.test("handoff() stands before fallback(), which replaces the model of a specialist that fails", async () => {
  const down = { ...scripted({ error: new ModelError("down", { recoverable: true }) }), id: "down" };
  const expert = { name: "expert", description: "Knows", instructions: "You know.", model: down };
  const use = [handoff([expert]), fallback([scripted("From the fallback.")])] as const;
  const model = scripted({ calls: [transfer("expert")] });
  const onError = () => {};
  assertEquals((await agent({ model, use }).run({ prompt: "Hi", onError }).result).text, "From the fallback.");
  assertThrows(
    () => agent({ model, use: use.toReversed() }),
    TypeError,
    'Cannot use "fallback" before "handoff"',
  );
});

Deno.test("handoff() asks no person about a call that the active agent may not make", async () => {
  const ran: string[] = [];
  const refund = tool({
    name: "refund",
    description: "Refunds an order",
    input: z.object({}),
    ask: true,
    execute: () => void ran.push("refund"),
  });
  const model = scripted({ calls: [["refund", {}]] }, "Sorry.");
  const use = [handoff([{ name: "refunds", description: "Refunds", instructions: "You refund.", tools: [refund] }])];
  const { status, messages } = await agent({ model, use }).run("Money back!").result;
  assertEquals([status, ran, lines(messages).slice(2)], [
    "done",
    [],
    [`denied The agent "main" has no tool "refund".`, "assistant Sorry."],
  ]);
});

Deno.test("handoff() denies calls of tools that the active agent does not have, and guards apply to specialists", async () => {
  const { messages } = await run([
    { calls: [["look", {}], ["greet", {}]] },
    { calls: [transfer("refunds")] },
    { calls: [["greet", {}], ["pay", {}], ["look", {}]] },
    "Bye.",
  ]);
  assertEquals(lines(messages.filter(({ role }) => role === "tool")).filter((line) => !line.includes("transferred")), [
    `denied The agent "main" has no tool "look".`,
    "ok Did greet.",
    `denied The agent "refunds" has no tool "greet".`,
    "denied pay is not permitted here.",
    "ok Did look.",
  ]);
});

Deno.test("handoff() refuses an unknown agent", async () => {
  const { asked, messages } = await run([{ calls: [transfer("unknown")] }, "Bye."]);
  assertEquals(asked()[1], main);
  assertEquals(JSON.stringify(messages).includes("expected one of main, refunds, experts"), true);
});

Deno.test("handoff() refuses names that are not different, and different tools with one name", () => {
  assertThrows(() => handoff([refunds, refunds]), TypeError, "expected different names");
  assertThrows(() => handoff([refunds], { back: "refunds" }), TypeError, "expected different names");
  const other = { ...experts, tools: [named("look")] };
  assertThrows(() => handoff([refunds, other]), TypeError, 'different tools "look"');
});
