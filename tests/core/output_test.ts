import { assert, assertEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import { agent, continueWith, type Middleware, pause, type Schema, textOf, tool } from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";

const output = z.object({ city: z.string(), degrees: z.number() });
const kyoto = { city: "Kyoto", degrees: 21 };
const good = JSON.stringify(kyoto);

/** Runs an agent whose model gives these answers. Returns the outcome. */
async function answered(...answers: readonly ScriptedAnswer[]) {
  const model = scripted(...answers);
  const run = agent({ model, output }).run("Where?");
  const { status, reason, text, output: value, messages } = await run.result;
  model.done();
  return { ended: [status, reason, text], value, messages: lines(messages), last: (await eventsOfRun(run)).at(-1) };
}

Deno.test("an answer that matches the output schema is parsed", async () => {
  assertEquals(await answered(good), {
    ended: ["done", undefined, good],
    value: kyoto,
    messages: ["user Where?", `assistant ${good}`],
    last: {
      type: "run.finished",
      status: "done",
      text: good,
      output: kyoto,
      finish: "stop",
      usage: { input: 1, output: 1 },
    },
  });
});

Deno.test("the answer may be inside a code fence", async () => {
  for (const fence of ["```json\n", "```\n", "\n\n```json\n"]) {
    assertEquals((await answered(`${fence}${good}\n\`\`\`\n`)).value, kyoto);
  }
});

Deno.test("the output is the value that the schema returns", async () => {
  const trimmed = z.object({ city: z.string().trim().default("nowhere") });
  const { output } = await agent({ model: scripted("{}"), output: trimmed }).run("Where?").result;
  assertEquals(output, { city: "nowhere" });
});

Deno.test("the output may be a value that JSON cannot hold: the events have it as far as they can", async () => {
  const byCity = z.codec(output, z.map(z.string(), z.number()), {
    decode: ({ city, degrees }) => new Map([[city, degrees]]),
    encode: (_) => kyoto,
  });
  const run = agent({ model: scripted(good), output: byCity }).run("Where?");
  const { status, output: value } = await run.result;
  assertEquals([status, value], ["done", new Map([["Kyoto", 21]])]);
});

Deno.test("an answer that does not match is requested again, with the validation error", async () => {
  const { ended, value, messages } = await answered("Kyoto", '{"city":"Kyoto"}', good);
  assertEquals([ended, value], [["done", undefined, good], kyoto]);
  assertEquals(messages.filter((_, index) => index % 2 === 1), [
    "assistant Kyoto",
    'assistant {"city":"Kyoto"}',
    `assistant ${good}`,
  ]);
  const wrong = messages.filter((line) => line.startsWith("output "));
  assert(wrong[0]?.startsWith("output Your answer does not match: Unexpected token"), wrong[0]);
  assertEquals(
    wrong[1],
    "output Your answer does not match: degrees: Invalid input: expected number, received undefined. Answer again, with JSON alone.",
  );
});

Deno.test("a run whose answers never match reaches the limit of outputs", async () => {
  const { ended, value, messages, last } = await answered("One", "Two", "Three");
  assertEquals([ended, value], [["limit", "outputs", "Three"], undefined]);
  assertEquals(messages.filter((line) => line.startsWith("assistant")), [
    "assistant One",
    "assistant Two",
    "assistant Three",
  ]);
  assertEquals(last, {
    type: "run.finished",
    finish: "stop",
    status: "limit",
    text: "Three",
    reason: "outputs",
    usage: { input: 3, output: 3 },
  });
});

Deno.test("the model receives the output schema, in the instructions and as an option", async () => {
  const model = scripted(good);
  await agent({ model, output, instructions: "Be brief." }).run("Where?").result;
  const [request] = model.requests;
  const schema = JSON.stringify(request?.options.output);
  assertEquals(
    request?.instructions,
    `Be brief.\n\nGive your final answer as JSON alone, matching this JSON Schema:\n${schema}`,
  );
  assertEquals(Object.keys(Object(request?.options.output).properties), ["city", "degrees"]);
});

Deno.test("only the final answer must match, after stop has accepted it", async () => {
  const asked: unknown[] = [];
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });
  const use: Middleware[] = [{
    stop: (ctx, next) => {
      asked.push([textOf(ctx.message), ctx.continuations]);
      return textOf(ctx.message) === "Hm." ? Promise.resolve(continueWith("Well?")) : next();
    },
  }];
  const model = scripted({ text: "I look.", calls: [["look", {}]] }, "Hm.", "Kyoto", good);
  const run = agent({ model, output, tools: [look], use }).run("Where?");
  assertEquals((await run.result).output, kyoto);
  assertEquals(asked, [["Hm.", 0], ["Kyoto", 1], [good, 1]]);
  assertEquals(eventLines(await eventsOfRun(run)).filter((line) => line.startsWith("turn.s")).length, 4);
});

Deno.test("the count of answers that do not match continues when a run is resumed", async () => {
  const use: Middleware[] = [{
    stop: (ctx, next) => ctx.resumed || textOf(ctx.message) !== "Two" ? next() : Promise.resolve(pause("Sure?")),
  }];
  const model = scripted("One", "Two", "never");
  const assistant = agent({ model, output, use, limits: { outputs: 1 } });
  const { session, status } = await assistant.run("Where?").result;
  const resumed = await assistant.resume({ session, answers: [] }).result;
  assertEquals([status, resumed.status, resumed.reason, model.left], ["paused", "limit", "outputs", 1]);
});

Deno.test("a schema that throws fails the run", async () => {
  const picky = output.refine(() => {
    throw new Error("picky");
  });
  const { status, error } = await agent({ model: scripted(good), output: picky }).run("Where?").result;
  assertEquals([status, error instanceof Error && error.message], ["failed", "picky"]);
});

Deno.test("agent() rejects an output schema without JSON Schema", () => {
  const mute: Schema = { "~standard": { version: 1, vendor: "mute", validate: (value) => ({ value }) } };
  assertThrows(
    () => agent({ model: scripted(), output: mute }),
    TypeError,
    "Cannot describe output: its mute schema does not convert to JSON Schema",
  );
});
