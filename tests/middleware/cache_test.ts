import { agent, type Middleware, ModelError, tool, user } from "@jizai/jizai";
import type { KeyValue } from "@jizai/jizai/middleware/cache";
import { cache, type CacheOptions } from "@jizai/jizai/middleware/cache";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";
import { Flights } from "../../middleware/reliability/cache/flights.ts";

/** Creates an agent with a cache whose tool counts its executions, and a function that runs it for an owner. */
function cached(answers: readonly ScriptedAnswer[], options: Partial<CacheOptions> = {}, ...inner: Middleware[]) {
  const executed: unknown[] = [];
  const look = tool({
    name: "look",
    description: "Looks",
    input: z.object({ at: z.string().default("sky"), fail: z.boolean().optional() }),
    execute(input) {
      executed.push(input);
      if (input.fail) throw new Error("blind");
      return `Saw the ${input.at}.`;
    },
  });
  const model = scripted(...answers);
  const keyValue = options.keyValue ?? memoryKeyValue();
  const assistant = agent({ model, tools: [look], use: [cache({ ...options, keyValue }), ...inner] });
  const errors: string[] = [];
  const ask = (prompt: string, owner?: string) =>
    assistant.run({
      prompt,
      ...(owner !== undefined && { owner }),
      onError: (error) => void errors.push(String(error)),
    });
  return { model, executed, ask, errors, keyValue };
}

Deno.test("cache() obeys the laws of middleware", async () => {
  await testMiddleware(() => cache({ keyValue: memoryKeyValue(), tools: () => true, per: ({ run }) => run.id }));
});

Deno.test("cache() answers the same request, whatever calls a subagent has made before", async () => {
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen." });
  const child = agent({
    name: "child",
    description: "Helps",
    model: scripted({ calls: [["look", {}]] }, "Helped.", { calls: [["look", {}], ["look", {}]] }, "Helped."),
    tools: [look],
  });
  const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
  const assistant = agent({ model, tools: [asTool(child)], use: [cache({ keyValue: memoryKeyValue() })] });
  for (let run = 0; run < 2; run++) assertEquals((await assistant.run("Go").result).text, "Done.");
  model.done();
});

Deno.test("cache() answers the same request once, and streams the cached text without usage", async () => {
  const { model, ask } = cached([{ reasoning: "Hm.", text: ["Hel", "lo"], usage: { input: 5, output: 7 } }]);
  await ask("Hi").result;
  const run = ask("Hi");
  const logged = eventLines(await eventsOfRun(run));
  assertEquals(logged.slice(4, -3), [
    "model.started 1 scripted",
    "reasoning.delta 1 0 Hm.",
    "text.delta 1 1 Hello",
    "model.finished 1 stop 0",
  ]);
  const { text, usage } = await run.result;
  assertEquals([text, usage], ["Hello", { input: 0, output: 0 }]);
  model.done();
});

Deno.test("cache() emits every part of a cached response", async () => {
  const parts = [
    { type: "provider_call", callId: "s1", name: "web_search", input: { query: "sun" } },
    { type: "provider_result", callId: "s1", name: "web_search", status: "ok", output: ["u"] },
    { type: "source", url: "https://a.example/" },
    { type: "media", mediaType: "image/png", data: "aa" },
  ] as const;
  const reads = [
    parts.map((part) => ({ type: "part", part }) as const),
    [{ type: "text", text: "Sunny." }, { type: "finish", reason: "stop" }],
  ] as const;
  const { ask } = cached([{ reads }]);
  const shown = async () => {
    const events = await eventsOfRun(ask("Hi"));
    return events.filter((event) => "part" in event);
  };
  const fresh = await shown();
  assertEquals(fresh.map(({ type }) => type), [
    "provider_tool.started",
    "provider_tool.finished",
    "part.added",
    "part.added",
    "text.delta",
  ]);
  assertEquals(await shown(), fresh);
});

Deno.test("cache() keeps the entries of owners apart, unless `per` shares them", async () => {
  const { ask, model } = cached(["For Ada", "For Bob", "For no owner"]);
  const text = async (owner?: string) => (await ask("Hi", owner).result).text;
  assertEquals([await text("ada"), await text("bob"), await text(), await text("bob"), await text("ada")], [
    "For Ada",
    "For Bob",
    "For no owner",
    "For Bob",
    "For Ada",
  ]);
  model.done();
  const shared = cached(["For all"], { per: () => "all" });
  assertEquals([(await shared.ask("Hi", "ada").result).text, (await shared.ask("Hi", "bob").result).text], [
    "For all",
    "For all",
  ]);
});

Deno.test("cache() asks again for another model, prompt, instruction or option", async () => {
  const keyValue = memoryKeyValue();
  const text = async (id: string, instructions: string, prompt: string, seed?: number) => {
    const model = { ...scripted(`${id} ${instructions} ${prompt} ${seed}`), id };
    const options: Middleware = {
      name: "options",
      model: (ctx, next) => next(seed === undefined ? {} : { request: { options: { ...ctx.request.options, seed } } }),
    };
    return (await agent({ model, instructions, use: [options, cache({ keyValue })] }).run(prompt).result).text;
  };
  const asked: readonly (readonly [string, string, string, number?])[] = [
    ["a", "x", "p"],
    ["b", "x", "p"],
    ["a", "y", "p"],
    ["a", "x", "q"],
    ["a", "x", "p", 1],
  ];
  for (const [id, instructions, prompt, seed] of asked) {
    assertEquals(await text(id, instructions, prompt, seed), `${id} ${instructions} ${prompt} ${seed}`);
  }
});

Deno.test("cache() finds a conversation whose calls have other ids", async () => {
  const { ask, model, executed } = cached([
    { calls: [{ name: "look", input: {}, id: "call_a" }] },
    "The sky.",
  ]);
  const first = await ask("Look").result;
  const second = await ask("Look").result;
  assertEquals([first.text, second.text], ["The sky.", "The sky."]);
  assertEquals(executed.length, 2);
  model.done();
});

Deno.test("cache() finds a conversation whose messages have other ids", async () => {
  const model = scripted("The sky.");
  const assistant = agent({ model, use: [cache({ keyValue: memoryKeyValue() })] });
  for (const id of ["m1", "m2", undefined]) {
    const { text } = await assistant.run({ messages: [{ ...user("Look"), ...(id !== undefined && { id }) }] }).result;
    assertEquals(text, "The sky.");
  }
  model.done();
});

Deno.test("cache() keeps results of the listed tools by their parsed input and owner", async () => {
  const look = (input: object) => ({ calls: [["look", input]] }) as const;
  const answers = [look({}), "1", look({ at: "sky" }), "2", look({ at: "sea" }), "3", look({}), "4"];
  const { ask, executed } = cached(answers, { model: false, tools: ["look"] });
  const results = async (owner: string) => {
    const { messages } = await ask("Look", owner).result;
    return lines(messages.filter(({ role }) => role === "tool"));
  };
  assertEquals(await results("ada"), ["ok Saw the sky."]);
  assertEquals(await results("ada"), ["ok Saw the sky."]);
  assertEquals(await results("ada"), ["ok Saw the sea."]);
  assertEquals(await results("bob"), ["ok Saw the sky."]);
  assertEquals(executed, [{ at: "sky" }, { at: "sea" }, { at: "sky" }]);
});

Deno.test("cache() keeps neither failed results, nor cut responses, nor errors", async () => {
  const fail = { calls: [["look", { fail: true }]] } as const;
  const failing = cached([fail, "1", fail, "2"], { model: false, tools: () => true });
  await failing.ask("Look").result;
  await failing.ask("Look").result;
  assertEquals(failing.executed.length, 2);

  const cut = cached([
    { text: "To", finish: "length" },
    { text: "Fil", finish: "filter" },
    { text: "Bro", error: new ModelError("cut") },
    "Whole",
  ]);
  const texts = [];
  for (let run = 0; run < 5; run++) texts.push((await cut.ask("Hi").result).text);
  assertEquals(texts, ["To", "Fil", "Bro", "Whole", "Whole"]);
});

/** Begins three runs of the same prompt, of which the first does the work. */
async function threeRuns(ask: ReturnType<typeof cached>["ask"]) {
  const moment = () => new Promise((resolve) => setTimeout(resolve, 20));
  const first = ask("Hi");
  await moment();
  const runs = [first, ask("Hi"), ask("Hi")];
  await moment();
  return runs;
}

Deno.test("cache() does the same work in progress once, also if a caller stops waiting", async () => {
  const gate = Promise.withResolvers<void>();
  const { ask, model } = cached([{ text: "Once", before: () => gate.promise }]);
  const runs = await threeRuns(ask);
  runs[1]?.stop();
  const stopped = await runs[1]?.result;
  gate.resolve();
  const [first, , third] = await Promise.all(runs.map(({ result }) => result));
  assertEquals([first?.text, stopped?.status, third?.text, third?.usage], [
    "Once",
    "aborted",
    "Once",
    { input: 0, output: 0 },
  ]);
  model.done();
});

Deno.test("cache() works for each caller itself if the work in progress fails or is stopped", async () => {
  const gate = Promise.withResolvers<void>();
  const { ask, model } = cached([
    { before: () => gate.promise, error: new ModelError("down") },
    "Mine",
  ]);
  const runs = await threeRuns(ask);
  gate.resolve();
  const results = await Promise.all(runs.map(({ result }) => result));
  assertEquals(results.map(({ status, text }) => [status, text]), [["failed", ""], ["done", "Mine"], ["done", "Mine"]]);
  model.done();
});

Deno.test("cache() does not wait for the work of a stopped run, whose hook hangs", async () => {
  const begun = Promise.withResolvers<void>();
  let calls = 0;
  const hanging: Middleware = {
    name: "hanging",
    async execute(_, next) {
      if (++calls > 1) return await next();
      begun.resolve();
      return await new Promise(() => {});
    },
  };
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Saw it." });
  const looking = (): ScriptedAnswer => ({ calls: [["look", {}]] });
  const assistant = agent({
    model: scripted(looking(), looking(), "Done."),
    tools: [look],
    use: [cache({ keyValue: memoryKeyValue(), model: false, tools: ["look"] }), hanging],
    limits: { grace: 1 },
  });
  const stopped = assistant.run("Look");
  await begun.promise;
  stopped.stop();
  assertEquals((await stopped.result).status, "aborted");
  const { messages } = await assistant.run("Look").result;
  assertEquals(lines(messages.filter(({ role }) => role === "tool")), ["ok Saw it."]);
});

Deno.test("cache() works for all callers at once if the same work fails twice", async () => {
  const flights = new Flights<string>();
  const { signal } = new AbortController();
  const allWork = Promise.withResolvers<void>();
  let begun = 0;
  const work = async () => {
    begun++;
    if (begun === 5) allWork.resolve();
    if (begun > 2) await allWork.promise; // never, if they work one after another
    throw new Error("down");
  };
  const callers = Array.from({ length: 5 }, () => flights.run("key", signal, work, () => true));
  const outcomes = await Promise.allSettled(callers);
  assertEquals([begun, outcomes.map(({ status }) => status)], [5, Array(5).fill("rejected")]);
  assertEquals(await flights.run("key", signal, () => Promise.resolve("up"), () => true), "up");
});

Deno.test("cache() shares the work of the caller that tries again after a failure", async () => {
  const flights = new Flights<string>();
  const { signal } = new AbortController();
  let begun = 0;
  const work = () => ++begun === 1 ? Promise.reject(new Error("down")) : Promise.resolve(`${begun}`);
  const callers = Array.from({ length: 5 }, () => flights.run("key", signal, work, () => true));
  const outcomes = await Promise.allSettled(callers);
  assertEquals(outcomes.map((outcome) => outcome.status === "fulfilled" ? outcome.value : outcome.status), [
    "rejected",
    ...Array(4).fill("2"),
  ]);
});

Deno.test("cache() does not wait longer than a lease for work whose request the platform has ended", async () => {
  using time = new FakeTime();
  using _ = stub(performance, "now", () => time.now);
  const flights = new Flights<string>();
  const { signal } = new AbortController();
  {
    using _ = stub(globalThis, "setTimeout", () => undefined as never); // the timers of the request never fire
    flights.run("key", signal, () => new Promise(() => {}), () => true);
  }
  let begun = 0;
  const callers = [1, 2].map(() => flights.run("key", signal, () => Promise.resolve(`${++begun}`), () => true));
  await time.tickAsync(30_000);
  assertEquals(begun, 0);
  await time.tickAsync(3_000);
  assertEquals(await Promise.all(callers), ["1", "1"]);
});

Deno.test("cache() must stand before redact(), and then its database receives no secret", async () => {
  const kept: string[] = [];
  const memory = memoryKeyValue();
  const keyValue: KeyValue = {
    ...memory,
    set(key, value, options) {
      kept.push(key, value);
      return memory.set(key, value, options);
    },
  };
  const hide = redact({ secrets: ["hunter2"] });
  const keep = cache({ keyValue, tools: ["tell"] });
  assertThrows(
    () => agent({ model: scripted(), use: [hide, keep] }),
    TypeError,
    'Cannot use "redact" before "cache": put cache() first in use',
  );
  let executions = 0;
  const tell = tool({
    name: "tell",
    description: "Tells",
    input: z.object({}),
    execute: () => `${++executions}: It is hunter2.`,
  });
  const model = scripted({ calls: [["tell", {}]] }, "So it is hunter2.");
  const assistant = agent({ model, tools: [tell], use: [keep, hide] });
  for (const _ of ["asked", "cached"]) {
    const run = assistant.run("Which?");
    const events = await eventsOfRun(run);
    const { text, messages } = await run.result;
    assertEquals([text, lines(messages)[2]], ["So it is [redacted].", "ok 1: It is [redacted]."]);
    assertEquals(JSON.stringify(events).match(/hunter2/g), null);
  }
  assertEquals([executions, kept.length, kept.filter((text) => text.includes("hunter2"))], [1, 6, []]);
});

Deno.test("cache() forgets an entry when it expires", async () => {
  using time = new FakeTime();
  const { ask } = cached(["First", "Second"], { expireIn: 1_000 });
  const text = async () => (await ask("Hi").result).text;
  assertEquals([await text(), await text()], ["First", "First"]);
  time.tick(1_000);
  assertEquals(await text(), "Second");
});

Deno.test("cache() works without a database that fails, and ignores entries that it cannot read", async () => {
  const broken: KeyValue = {
    ...memoryKeyValue(),
    get: () => Promise.reject(new Error("down")),
    set: () => Promise.reject(new Error("down")),
  };
  const failing = cached(["One", "Two"], { keyValue: broken });
  assertEquals([(await failing.ask("Hi").result).text, (await failing.ask("Hi").result).text], ["One", "Two"]);
  assertEquals(failing.errors, Array(4).fill("Error: down"));
  for (const entry of ["{", "null", "[]", `{"parts":1}`]) {
    const { ask } = cached(["Fresh"], { keyValue: { ...memoryKeyValue(), get: () => Promise.resolve(entry) } });
    assertEquals((await ask("Hi").result).text, "Fresh");
  }
});

Deno.test("cache() does not keep an entry that is larger than a key-value database takes", async () => {
  const { ask, errors, model } = cached(["x".repeat(500_001), "y"]);
  await ask("Hi").result;
  assertEquals((await ask("Hi").result).text, "y");
  assertEquals(errors, []);
  model.done();
});
