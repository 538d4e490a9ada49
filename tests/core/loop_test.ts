import { assertEquals } from "@std/assert";
import * as z from "zod";
import {
  agent,
  continueWith,
  type Event,
  finish,
  type Middleware,
  type ModelResponse,
  noUsage,
  reply,
  textOf,
  tool,
  user,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";
import { compacting } from "../support/compacting.ts";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });
const looking = { text: "I look.", calls: [["look", {}]] } as const;

Deno.test("a run takes turns until the model makes no more calls", async () => {
  const indexes: unknown[] = [];
  const use: Middleware[] = [{
    turn: async (ctx, next) => {
      const { response, results } = await next();
      indexes.push([ctx.index, ctx.transcript.length, textOf(response), results.map(({ status }) => status)]);
      return { response, results };
    },
  }];
  const model = scripted(looking, looking, "Done.");
  const { messages } = await agent({ model, tools: [look], use }).run("Look").result;
  const turn = ["assistant I look.", "call look", "ok Seen"];
  assertEquals(lines(messages), ["user Look", ...turn, ...turn, "assistant Done."]);
  assertEquals(indexes, [[1, 1, "I look.", ["ok"]], [2, 3, "I look.", ["ok"]], [3, 5, "Done.", []]]);
  model.done();
});

Deno.test("stop runs only when the model makes no calls, and receives the answer", async () => {
  const asked: unknown[] = [];
  const use: Middleware[] = [{
    stop: (ctx, next) => {
      asked.push([textOf(ctx.message), ctx.transcript.length, ctx.resumed]);
      return next();
    },
  }];
  const model = scripted(looking, "Done.");
  await agent({ model, tools: [look], use }).run("Look").result;
  assertEquals(asked, [["Done.", 4, false]]);
  await agent({ model: scripted(looking), tools: [look], use, limits: { turns: 1 } }).run("Look").result;
  await agent({ model: scripted({ error: new Error("cut") }), use }).run("Look").result;
  assertEquals(asked.length, 1);
});

Deno.test("a stop hook continues with more messages, inside the same prompt", async () => {
  let prompts = 0;
  const use: Middleware[] = [{
    prompt: (_, next) => {
      prompts++;
      return next();
    },
    stop: (ctx) => Promise.resolve(ctx.continuations > 0 ? finish() : continueWith("Sure?", user("Really?", "me"))),
  }];
  const model = scripted("One.", "Two.");
  const run = agent({ model, use }).run("Count");
  const { text, messages } = await run.result;
  assertEquals([text, prompts], ["Two.", 1]);
  assertEquals(lines(messages), ["user Count", "assistant One.", "stop Sure?", "me Really?", "assistant Two."]);
  assertEquals(eventLines(await eventsOfRun(run)).filter((line) => /^(prompt|turn)/.test(line)), [
    "prompt.accepted",
    "turn.started 1",
    "turn.finished 1",
    "turn.started 2",
    "turn.finished 2",
  ]);
});

Deno.test("the transcript contains the prompt as a hook changed it", async () => {
  const use: Middleware[] = [{ prompt: (_, next) => next({ prompt: user("Hello") }) }];
  const model = scripted("Hi!");
  const run = agent({ model, use }).run("Hi");
  assertEquals(lines((await run.result).messages), ["user Hello", "assistant Hi!"]);
  const accepted = (await eventsOfRun(run)).find(({ type }) => type === "prompt.accepted");
  assertEquals<Event | undefined>(accepted, { type: "prompt.accepted", prompt: user("Hello") });
});

Deno.test("a prompt hook may answer itself, and change the answer", async () => {
  const use: Middleware[] = [
    { prompt: async (_, next) => ({ ...await next(), text: "Changed." }) },
    { prompt: () => Promise.resolve({ status: "done", text: "Mine." }) },
  ];
  const model = scripted();
  const run = agent({ model, use }).run("Hi");
  assertEquals(eventLines(await eventsOfRun(run)), [
    "run.started run session false",
    "session.opened new",
    "session.closed",
    "run.finished done Changed.",
  ]);
  assertEquals((await run.result).messages, []);
});

Deno.test("a turn hook may answer without the model, and its answer is stored", async () => {
  const mine = (response: ModelResponse): Middleware => ({
    name: "mine",
    turn: async (ctx, next) =>
      ctx.index > 1 ? await next() : {
        response,
        results: [{ callId: "a", name: "look", status: "ok", parts: [{ type: "text", text: "Seen" }] }],
      },
  });
  const calling = { ...reply("I look."), finish: "calls" } as const;
  const parts = [...calling.parts, { type: "call", id: "a", name: "look", input: {} }] as const;
  const model = scripted("Done.");
  const run = agent({ model, use: [mine({ ...calling, parts })] }).run("Look");
  const { messages } = await run.result;
  assertEquals(lines(messages), ["user Look", "assistant I look.", "call look", "ok Seen", "assistant Done."]);
  assertEquals((await eventsOfRun(run)).filter(({ type }) => type === "warning"), []);

  const text = agent({
    model: scripted(),
    use: [{ turn: () => Promise.resolve({ response: reply("Hi!"), results: [] }) }],
  });
  assertEquals(lines((await text.run("Hi").result).messages), ["user Hi", "assistant Hi!"]);
});

Deno.test("a turn hook may handle a failure inside it, also after a compaction", async () => {
  const use: Middleware[] = [{
    turn: (_, next) => next().catch(() => ({ response: reply("Sorry."), results: [] })),
  }];
  for (const context of [Infinity, 1]) {
    const model = scripted({ text: "Hel", error: new Error("cut") });
    const { status, messages } = await compacting({ model, use, limits: { context } })
      .run({ messages: [user("Earlier"), { role: "assistant", parts: [{ type: "text", text: "Yes?" }] }, user("Hi")] })
      .result;
    assertEquals([status, lines(messages).at(-1), lines(messages).length], [
      "done",
      "assistant Sorry.",
      context === 1 ? 3 : 4,
    ]);
  }
});

Deno.test("an empty answer is an answer", async () => {
  const run = agent({ model: scripted({ text: [] }) }).run("Hi");
  const { status, text, messages } = await run.result;
  assertEquals([status, text, ...lines(messages)], ["done", "", "user Hi"]);
});

Deno.test("ctx.run.used and ctx.run.usage are live", async () => {
  const seen: unknown[] = [];
  const use: Middleware[] = [{
    model: async (ctx, next) => {
      const before = { ...ctx.run.used, ...ctx.run.usage };
      const response = await next();
      seen.push(before, ctx.run.usage);
      return response;
    },
  }];
  const model = scripted({ ...looking, usage: { input: 5, output: 2 } }, { text: "Done.", usage: noUsage });
  await agent({ model, tools: [look], use }).run("Look").result;
  assertEquals(seen, [
    { turns: 1, calls: 0, continuations: 0, input: 0, output: 0 },
    { input: 5, output: 2 },
    { turns: 2, calls: 1, continuations: 0, input: 5, output: 2 },
    { input: 5, output: 2 },
  ]);
});

Deno.test("a run that is stopped after the model's answer keeps the answer", async () => {
  const stopping = async (calls: boolean) => {
    const model = scripted(calls ? looking : "Done.");
    const use: Middleware[] = [{
      model: async (_, next) => {
        const response = await next();
        run.stop();
        return response;
      },
    }];
    const run = agent({ model, tools: [look], use }).run("Look");
    const { status, text, messages } = await run.result;
    return [status, text, ...lines(messages)];
  };
  assertEquals(await stopping(false), ["aborted", "Done.", "user Look", "assistant Done."]);
  assertEquals(await stopping(true), [
    "aborted",
    "I look.",
    "user Look",
    "assistant I look.",
    "call look",
    "aborted Stopped before it was done.",
  ]);
});
