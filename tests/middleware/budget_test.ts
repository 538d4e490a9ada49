import {
  type Agent,
  agent,
  compacted,
  denied,
  deny,
  memory,
  type Middleware,
  ModelError,
  type ModelRequest,
  reply,
  text,
  textOf,
  tool,
  user,
} from "@jizai/jizai";
import { type Amounts, type Budget, budget, type BudgetOptions } from "@jizai/jizai/middleware/budget";
import { human } from "@jizai/jizai/middleware/human";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { cache } from "@jizai/jizai/middleware/cache";
import { fallback } from "@jizai/jizai/middleware/fallback";
import { redact } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import { verify } from "@jizai/jizai/middleware/verify";
import { scripted, type ScriptedAnswer, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { screen } from "@jizai/jizai/screen";
import { memoryKeyValue } from "@jizai/jizai/session/key_value";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { barrier } from "../support/batch.ts";
import { recordingStore, storeWith } from "../support/recording_store.ts";
import { storedProgress } from "../support/stored_run.ts";
import { lines } from "../support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen." });

/** A step that makes so many calls and took so many tokens. */
function looking(calls: number, input = 1, output = 1): ScriptedStep {
  return { calls: Array.from({ length: calls }, () => ["look", {}] as const), usage: { input, output } };
}

const finish = "The budget is spent. Answer now with what you have. You can no longer use tools.";

/** The differences of a request from one of its run before the budget was spent. */
const isLast = ({ messages, tools }: ModelRequest) => {
  const last = messages.at(-1);
  return tools.length === 0 && last?.role === "user" && textOf(last) === finish && last.from === "budget";
};

/** Returns the result of a run under a budget, and which of its requests were the last ones. */
async function spent(
  options: BudgetOptions,
  steps: readonly ScriptedAnswer[],
  use: (spend: Budget) => readonly Middleware[] = (spend) => [spend],
) {
  const spend = budget(options);
  const model = scripted(...steps);
  const { status, reason, text, messages } = await agent({ model, tools: [look], use: use(spend) }).run("Hi").result;
  model.done();
  return { end: [status, reason, text], lines: lines(messages).slice(1), last: model.requests.map(isLast) };
}

/** Records the budget that is left before, during and after a request. */
function watchLeft(spend: Budget, amount: keyof Amounts) {
  const seen: number[] = [];
  const record = (ctx: Parameters<Budget["left"]>[0]) => seen.push(spend.left(ctx)[amount]);
  const beneath: Middleware = {
    name: "beneath",
    model(ctx, next) {
      record(ctx);
      return next();
    },
  };
  const around: Middleware = {
    name: "around",
    async turn(ctx, next) {
      record(ctx);
      const result = await next();
      record(ctx);
      return result;
    },
  };
  return { seen, use: [around, spend, beneath] };
}

Deno.test("budget() does not affect a run within its limits", async () => {
  const within = { tokens: 2_000, cost: 1, calls: 2, ms: 60_000, prices: { scripted: { input: 3, output: 15 } } };
  assertEquals(await spent(within, [looking(2), "Done."]), {
    end: ["done", undefined, "Done."],
    lines: ["call look look", "ok Seen.", "ok Seen.", "assistant Done."],
    last: [false, false],
  });
});

Deno.test("budget() without limits leaves Infinity of everything", async () => {
  const spend = budget();
  const seen: Amounts[] = [];
  const note: Middleware = {
    name: "note",
    async prompt(ctx, next) {
      const answer = await next();
      seen.push(spend.left(ctx));
      return answer;
    },
  };
  await agent({ model: scripted("Done."), use: [note, spend] }).run("Hi").result;
  assertEquals(seen, [{ tokens: Infinity, cost: Infinity, calls: Infinity, ms: Infinity }]);
});

Deno.test("budget() reserves the tokens of a request, and replaces them by the real ones", async () => {
  const spend = budget({ tokens: 1_000, reserve: 100 });
  const { seen, use } = watchLeft(spend, "tokens");
  const model = scripted(looking(1, 30, 20), { text: "Done.", usage: { input: 40, output: 10 } });
  await agent({ model, use, instructions: "x".repeat(400) }).run("Hi").result;
  const first = 8 + 100 + 1 + 100; // [{"type":"text","text":"Hi"}], instructions, "[]" for no tools, the answer
  assertEquals(seen.slice(0, 3), [1_000, 1_000 - first, 950]);
  assertEquals([seen[3], seen[5]], [950, 900]);
});

Deno.test("budget() reserves the request's maxTokens for the answer", async () => {
  const spend = budget({ tokens: 1_000 });
  const { seen, use } = watchLeft(spend, "tokens");
  const brief: Middleware = { name: "brief", model: (_, next) => next({ request: { options: { maxTokens: 50 } } }) };
  await agent({ model: scripted("Done."), use: [brief, ...use] }).run("Hi").result;
  assertEquals(seen, [1_000, 1_000 - 9 - 50, 998]);
});

Deno.test("budget() requests a last answer without tools if the next request does not fit, and ends with the status limit", async () => {
  assertEquals(await spent({ tokens: 1_500 }, [looking(1, 400, 300), "As far as I got."]), {
    end: ["limit", "budget", "As far as I got."],
    lines: ["call look", "ok Seen.", "assistant As far as I got."],
    last: [false, true],
  });
  assertEquals(await spent({ tokens: 0 }, ["All I know."]), {
    end: ["limit", "budget", "All I know."],
    lines: ["assistant All I know."],
    last: [true],
  });
});

Deno.test("budget() emits run.finished with the status limit", async () => {
  const run = agent({ model: scripted("Done."), use: [budget({ tokens: 1, name: "purse" })] }).run("Hi");
  const events = await Array.fromAsync(run.events);
  assertEquals(events.at(-1), {
    type: "run.finished",
    finish: "stop",
    status: "limit",
    text: "Done.",
    usage: { input: 1, output: 1 },
    reason: "purse",
  });
});

Deno.test("budget() makes no request after the last answer, also for a continuation", async () => {
  assertEquals(await spent({ tokens: 0 }, [{ ...looking(2), text: "But I look." }]), {
    end: ["limit", "budget", "But I look."],
    lines: [
      "assistant But I look.",
      "call look look",
      "skipped Not run: the budget is spent.",
      "skipped Not run: the budget is spent.",
    ],
    last: [true],
  });
  const picky = verify(() => "Try again.", { attempts: 1 });
  assertEquals(await spent({ tokens: 0 }, ["So be it."], (spend) => [picky, spend]), {
    end: ["limit", "budget", "So be it."],
    lines: ["assistant So be it.", "verify Try again."],
    last: [true],
  });
});

Deno.test("budget() skips calls over the limit, in the model's order, and then requests a last answer", async () => {
  assertEquals(await spent({ calls: 2 }, [looking(1), looking(3), "Enough."]), {
    end: ["limit", "budget", "Enough."],
    lines: [
      "call look",
      "ok Seen.",
      "call look look look",
      "ok Seen.",
      "skipped Not run: the budget is spent.",
      "skipped Not run: the budget is spent.",
      "assistant Enough.",
    ],
    last: [false, false, true],
  });
});

Deno.test("budget() does not count a denied call or one of an unknown tool, and counts a failed one", async () => {
  const guard: Middleware = {
    name: "guard",
    approval: (ctx, next) => ctx.call.id === "call_1" ? Promise.resolve(deny("No.")) : next(),
  };
  const spend = budget({ calls: 5 });
  const { seen, use } = watchLeft(spend, "calls");
  const broken = tool({
    name: "broken",
    description: "Fails",
    input: z.object({}),
    execute: () => Promise.reject(new Error("broken")),
  });
  const model = scripted({ calls: [["look", {}], ["look", {}], ["broken", {}], ["missing", {}]] }, "Done.");
  await agent({ model, tools: [look, broken], use: [...use, guard] }).run("Hi").result;
  assertEquals(seen, [5, 5, 3, 3, 3, 3]);
});

Deno.test("budget() ignores a call that an outer hook answers", async () => {
  const block: Middleware = {
    name: "block",
    tool: (ctx, next) => ctx.index === 0 ? Promise.resolve(denied("No.")) : next(),
  };
  const cache: Middleware = {
    name: "cache",
    tool: (ctx, next) => ctx.index === 1 ? Promise.resolve(text("1")) : next(),
  };
  const spend = budget({ calls: 5 });
  const { seen, use } = watchLeft(spend, "calls");
  const model = scripted(looking(3), "Done.");
  await agent({ model, tools: [look], use: [block, cache, ...use] }).run("Hi").result;
  assertEquals(seen, [5, 5, 4, 4, 4, 4]);
});

Deno.test("budget() charges tokens written to a cache and tokens of reasoning at their own prices, or at those of other tokens", async () => {
  const prices = { input: 1_000_000, output: 2_000_000 };
  const usage = { input: 100, output: 30, cached: 40, cacheWrite: 20, reasoning: 25 };
  const left = async (more: { cacheWrite?: number; reasoning?: number }) => {
    const { seen, use } = watchLeft(budget({ cost: 10_000, prices: { scripted: { ...prices, ...more } } }), "cost");
    await agent({ model: scripted({ text: "Done.", usage }), use }).run("Hi").result;
    return seen.at(-1);
  };
  assertEquals(await left({}), 10_000 - (100 + 60));
  assertEquals(await left({ cacheWrite: 1_250_000 }), 10_000 - (80 + 25 + 60));
  assertEquals(await left({ reasoning: 3_000_000 }), 10_000 - (100 + 10 + 75));
});

Deno.test("budget() counts the price of each model, and a lower one for cached tokens", async () => {
  const spend = budget({
    cost: 10_000,
    reserve: 10,
    prices: { scripted: { input: 1_000_000, output: 2_000_000, cached: 500_000 } },
  });
  const { seen, use } = watchLeft(spend, "cost");
  const model = scripted({ text: "Done.", usage: { input: 100, output: 10, cached: 40 } });
  await agent({ model, use }).run("Hi").result;
  assertEquals(seen, [10_000, 10_000 - 9 - 2 * 10, 10_000 - (60 + 40 / 2 + 20)]);
  const last = { cost: 1, prices: { scripted: { input: 0, output: 2_000 } } };
  assertEquals(await spent(last, ["All I know."]), {
    end: ["limit", "budget", "All I know."],
    lines: ["assistant All I know."],
    last: [true],
  });
});

Deno.test("budget({ cost }) fails a request to a model without a price", async () => {
  const model = scripted();
  const { status, error } = await agent({ model, use: [budget({ cost: 1 })] }).run("Hi").result;
  assertEquals(
    [status, String(error), model.requests.length],
    ["failed", 'TypeError: Cannot budget the cost of "scripted": it has no price; expected one in `prices`', 0],
  );
  const free = agent({ model: scripted("Done."), use: [budget({ tokens: 2_000 })] });
  assertEquals((await free.run("Hi").result).status, "done");
});

Deno.test("budget() counts each attempt, and a fallback at its own price", async () => {
  const down = new ModelError("down", { recoverable: true });
  const other = { ...scripted({ text: "Done.", usage: { input: 10, output: 0 } }), id: "other" };
  const prices = { scripted: { input: 1_000_000, output: 0 }, other: { input: 3_000_000, output: 0 } };
  const spend = budget({ cost: 1_000, prices });
  const { seen, use } = watchLeft(spend, "cost");
  await agent({
    model: scripted({ error: down }, { error: down }),
    use: [fallback([other]), retry({ attempts: 2, delay: 0 }), ...use],
  }).run("Hi").result;
  assertEquals(seen, [1_000, 991, 991, 1_000 - 3 * 9, 970]);
});

Deno.test("budget() counts nothing for a request that fails or that a hook answers", async () => {
  const spend = budget({ tokens: 1_100 });
  const cache: Middleware = {
    name: "cache",
    model: (ctx, next) => ctx.turn === 2 ? Promise.resolve(reply("Known.")) : next(),
  };
  const { seen, use } = watchLeft(spend, "tokens");
  const model = scripted({ error: new ModelError("down", { recoverable: true }) }, looking(1, 20, 20));
  const { text } = await agent({ model, tools: [look], use: [retry({ delay: 0 }), ...use, cache] }).run("Hi").result;
  assertEquals([text, seen[0], seen[3], seen[4], seen.at(-1)], ["Known.", 1_100, 1_060, 1_060, 1_060]);
});

Deno.test("budget() charges the reservation if the provider reports no usage, and nothing for a cached answer", async () => {
  const spend = budget({ tokens: 1_000, reserve: 100 });
  const { seen, use } = watchLeft(spend, "tokens");
  const model = scripted({ reads: [[{ type: "text", text: "Done." }, { type: "finish", reason: "stop" }]] });
  const cached = cache({ keyValue: memoryKeyValue() });
  const assistant = agent({ model, use: [...use, cached] });
  for (let run = 0; run < 2; run++) await assistant.run("Hi").result;
  const reserved = 8 + 1 + 100;
  assertEquals(seen, [1_000, 1_000 - reserved, 1_000 - reserved, 1_000, 1_000 - reserved, 1_000]);
});

Deno.test("budget() charges the reservation if a response is cut, on either side of the hook that cuts it", async () => {
  const rude = screen({ window: 10, check: ({ text }) => ({ type: text.includes("fool") ? "cut" : "pass" }) });
  const cutting: Middleware = { name: "cutting", model: rude };
  for (const isOutside of [true, false]) {
    const spend = budget({ tokens: 1_000, reserve: 100 });
    const { seen, use } = watchLeft(spend, "tokens");
    const text = { type: "text", text: "You fool, you are wrong. " } as const;
    const { promise: cut, reject } = Promise.withResolvers<never>();
    const model = scripted({
      before: (_, signal) => signal.addEventListener("abort", () => reject(signal.reason)),
      reads: [[text], [text], cut],
    });
    await agent({ model, use: isOutside ? [cutting, ...use] : [...use, cutting] }).run("Hi").result;
    assertEquals(seen, [1_000, 1_000 - 109, 1_000 - 109]);
  }
});

Deno.test("budget() repeats a failed last answer", async () => {
  const down = new ModelError("down", { recoverable: true });
  const result = await spent({ tokens: 0 }, [{ error: down }, "So far."], (spend) => [retry({ delay: 0 }), spend]);
  assertEquals([result.end, result.last], [["limit", "budget", "So far."], [true, true]]);
});

Deno.test("budget() must stand before compaction, which does not call next() at compact", () => {
  assertThrows(
    () => agent({ model: scripted(), use: [compaction(), budget()] }),
    TypeError,
    'Cannot use "compaction" before "budget"',
  );
});

Deno.test("budget() must stand after retry and fallback", () => {
  for (const [name, first] of [["retry", retry()], ["fallback", fallback([scripted()])]] as const) {
    assertThrows(
      () => agent({ model: scripted(), use: [budget(), first] }),
      TypeError,
      `Cannot use "budget" before "${name}"`,
    );
  }
});

Deno.test("budget() requests a last answer when the time is up, and skips calls", async () => {
  using time = new FakeTime();
  const wait = tool({ name: "look", description: "Takes 600 ms", input: z.object({}), execute: () => time.tick(600) });
  const model = scripted(looking(1), { ...looking(2), before: () => void time.tick(500) }, "In time.");
  const { status, messages } = await agent({ model, tools: [wait], use: [budget({ ms: 1_000 })] }).run("Hi").result;
  assertEquals([status, ...lines(messages).slice(-4)], [
    "limit",
    "call look look",
    "skipped Not run: the budget is spent.",
    "skipped Not run: the budget is spent.",
    "assistant In time.",
  ]);
  assertEquals(model.requests.map(isLast), [false, false, true]);
});

Deno.test("budget() requests a last answer when the time is up, also without a skipped call", async () => {
  using time = new FakeTime();
  const wait = tool({
    name: "look",
    description: "Takes a second",
    input: z.object({}),
    execute: () => time.tick(1_000),
  });
  const model = scripted(looking(1), "In time.");
  const { status } = await agent({ model, tools: [wait], use: [budget({ ms: 1_000 })] }).run("Hi").result;
  assertEquals([status, model.requests.map(isLast)], ["limit", [false, true]]);
});

Deno.test("budget() continues with a resumed run in another process, and does not count the pause", async () => {
  using time = new FakeTime();
  const store = memory();
  const seen: Amounts[] = [];
  const make = () => {
    const spend = budget({ tokens: 9_000, calls: 3, ms: 10_000 });
    const note: Middleware = {
      name: "note",
      async session(ctx, next) {
        seen.push(spend.left(ctx));
        const result = await next();
        seen.push(spend.left(ctx));
        return result;
      },
    };
    const model = scripted(
      seen.length > 0 ? "Done." : { ...looking(2, 100, 100), before: () => void time.tick(1_000) },
    );
    const careful = { ...look, ask: () => true };
    return agent({ model, tools: [careful], use: [note, spend] });
  };
  const { session, status, questions } = await make().run({ prompt: "Hi", store }).result;
  assertEquals([status, seen], ["paused", [
    { tokens: 9_000, cost: Infinity, calls: 3, ms: 10_000 },
    { tokens: 8_800, cost: Infinity, calls: 3, ms: 9_000 },
  ]]);
  time.tick(3_600_000);
  const answers = questions.map(({ callId = "" }, index) => {
    return index === 0 ? { callId, type: "approve" } as const : { callId, type: "deny" } as const;
  });
  assertEquals((await make().resume({ session, answers, store }).result).status, "done");
  assertEquals(seen.slice(2), [
    { tokens: 8_800, cost: Infinity, calls: 3, ms: 9_000 },
    { tokens: 8_798, cost: Infinity, calls: 2, ms: 9_000 },
  ]);
});

Deno.test("budget() counts a paused call once", async () => {
  const spend = budget({ calls: 5 });
  const { seen, use } = watchLeft(spend, "calls");
  const pausing: Middleware = {
    name: "pausing",
    tool: ({ run, call, resumed }, next) =>
      call.id === "call_2" && !resumed ? Promise.reject(run.pause("Sure?")) : next(),
  };
  const assistant = agent({ model: scripted(looking(2), "Done."), tools: [look], use: [...use, pausing] });
  const { session } = await assistant.run("Hi").result;
  await assistant.resume({ session, answers: [] }).result;
  assertEquals([seen.at(0), seen.at(-1)], [5, 3]);
});

Deno.test("budget() counts a call once if a person edits its input, or a hook inside renames it", async () => {
  const write = tool({
    name: "write",
    description: "Writes",
    input: z.object({ path: z.string() }),
    ask: true,
    execute: ({ path }) => `Wrote ${path}.`,
  });
  const edit = human(() => ({ allow: true, input: { path: "b" } }));
  const rename: Middleware = {
    name: "rename",
    tool: (ctx, next) => next(ctx.name === "look" ? { name: "write", input: { path: "a" } } : {}),
  };
  for (const [name, input] of [["write", { path: "a" }], ["look", {}]] as const) {
    const model = scripted({ calls: [[name, input]] }, "Done.");
    const use = [budget({ calls: 1 }), edit, rename];
    const { status, messages } = await agent({ model, tools: [look, write], use }).run("Hi").result;
    assertEquals([status, ...lines(messages).slice(2)], ["done", "ok Wrote b.", "assistant Done."]);
  }
});

Deno.test("budget() counts a call once if its tool pauses", async () => {
  let paused = false;
  const sure = tool({
    name: "sure",
    description: "Asks once",
    input: z.object({}),
    execute(_, { run }) {
      if (paused) return "Sure.";
      paused = true;
      throw run.pause("Sure?");
    },
  });
  const assistant = agent({
    model: scripted({ calls: [["sure", {}]] }, "Done."),
    tools: [sure],
    use: [budget({ calls: 1 })],
  });
  const { session } = await assistant.run("Hi").result;
  const { status, messages } = await assistant.resume({ session, answers: [] }).result;
  assertEquals([status, ...lines(messages).slice(2)], ["done", "ok Sure.", "assistant Done."]);
});

Deno.test("budget() counts a paused call once if redact() masks long numbers and words in what is saved", async () => {
  const spend = budget({ calls: 20 });
  const left: number[] = [];
  const note: Middleware = { stop: (ctx, next) => (left.push(spend.left(ctx).calls), next()) };
  let paused = false;
  const pausing: Middleware = {
    execute({ callIndex, run }, next) {
      if (callIndex < 16 || paused) return next();
      paused = true;
      throw run.pause("Sure?");
    },
  };
  const use = [redact({ patterns: [/\b\d{13,19}\b/, /\w{16}/] }), spend, note, pausing];
  const assistant = agent({ model: scripted(looking(17), "Done."), tools: [look], use });
  const { session, status } = await assistant.run("Hi").result;
  assertEquals(status, "paused");
  await assistant.resume({ session, answers: [] }).result;
  assertEquals(left, [3]);
});

Deno.test("budget() counts a call once if it runs again after a crash", async () => {
  const { store, saved } = recordingStore();
  const isHalfDone = () => saved.some((session) => storedProgress(session) === "tools ran,running");
  const idempotent = (name: string, execute: () => unknown) =>
    tool({ name, description: "", input: z.object({}), idempotent: true, execute });
  const fast = idempotent("fast", () => "Done.");
  const slow = idempotent("slow", async () => {
    while (!isHalfDone()) await new Promise((resolve) => setTimeout(resolve));
  });
  const model = scripted({ calls: [["fast", {}], ["slow", {}]] }, "Done.");
  const use = [budget({ calls: 2 })];
  await agent({ model, tools: [fast, slow], use }).run({ prompt: "Hi", session: "s", store }).result;
  const crashed = saved.findLast((session) => storedProgress(session) === "tools ran,running");
  const next = await storeWith(crashed);
  const other = agent({ model: scripted("Done."), tools: [fast, slow], use });
  const { status, messages } = await other.resume({ session: "s", store: next.store, answers: [], lost: () => true })
    .result;
  assertEquals([status, ...lines(messages).slice(2)], ["done", "ok Done.", "ok", "assistant Done."]);
});

/** A parent that calls `helper` so often at once, and then answers. */
function parent(helper: Agent<unknown, unknown>, calls: number, use: readonly Middleware[]) {
  const called = Array.from({ length: calls }, (_, n) => ["help", { prompt: `Help ${n}` }] as const);
  const model = scripted({ calls: called }, "Done.");
  return {
    model,
    run: () => agent({ model, tools: [asTool(helper, { name: "help", description: "" })], use }).run("Hi"),
  };
}

Deno.test("budget() shares one ledger between a run and its subagents, at any depth", async () => {
  const spend = budget({ tokens: 10_000, calls: 10 });
  const seen: Amounts[] = [];
  const note: Middleware = {
    name: "note",
    async prompt(ctx, next) {
      const answer = await next();
      seen.push(spend.left(ctx));
      return answer;
    },
  };
  const use = [{ ...note, inherit: true }, spend]; // which is inherited by itself
  const inner = agent({ name: "inner", model: scripted({ text: "Deep.", usage: { input: 5, output: 5 } }) });
  const model = scripted({ calls: [["deeper", { prompt: "Go on" }], ["look", {}]] }, "Helped.");
  const tools = [look, asTool(inner, { name: "deeper", description: "" })];
  await parent(agent({ name: "middle", model, tools }), 1, use).run().result;
  assertEquals(seen.map(({ tokens, calls }) => [tokens, calls]), [
    [10_000 - 2 - 2 - 10, 7],
    [10_000 - 2 - 2 - 10 - 2, 7],
    [10_000 - 2 - 2 - 10 - 2 - 2, 7],
  ]);
});

Deno.test("budget() counts once if a subagent uses it too", async () => {
  const spend = budget({ tokens: 10_000, calls: 10 });
  const { seen, use } = watchLeft(spend, "tokens");
  await parent(agent({ name: "helper", model: scripted("Helped."), use: [spend] }), 1, use).run().result;
  assertEquals(seen.at(-1), 9_994);
});

Deno.test("budget() counts a subagent's fallback at its own price, and fails without one", async () => {
  const helped = async (id: string) => {
    const spend = budget({
      cost: 10_000,
      prices: { scripted: { input: 1_000_000, output: 0 }, other: { input: 3_000_000, output: 0 } },
    });
    const { seen, use } = watchLeft(spend, "cost");
    const other = { ...scripted({ text: "Helped.", usage: { input: 10, output: 0 } }), id };
    const model = scripted({ error: new ModelError("down", { recoverable: true }) });
    const { messages } = await parent(agent({ name: "helper", model, use: [fallback([other])] }), 1, use).run().result;
    return [lines(messages)[2], seen.at(-1)];
  };
  assertEquals(await helped("other"), ["ok Helped.", 10_000 - 1 - 3 * 10 - 1]);
  assertEquals(await helped("unknown"), ["error helper did not finish: failure", 10_000 - 1 - 10 - 1]);
});

Deno.test("budget() counts the time of subagents as that of the run", async () => {
  using time = new FakeTime();
  const spend = budget({ ms: 10_000 });
  const { seen, use } = watchLeft(spend, "ms");
  const model = scripted({ text: "Helped.", before: () => void time.tick(1_000) });
  await parent(agent({ name: "helper", model, use: [spend] }), 1, use).run().result;
  assertEquals([seen.at(0), seen.at(-1)], [10_000, 9_000]);
});

Deno.test("budget() reserves tokens for concurrent subagents", async () => {
  const spend = budget({ tokens: 2_000 });
  const both = barrier(2);
  const model = scripted({ text: "Helped.", before: both }, { text: "Only this much.", before: both });
  const { run, model: asked } = parent(agent({ name: "helper", model, use: [spend] }), 2, [spend]);
  const { status, messages } = await run().result;
  assertEquals(model.requests.map(isLast), [false, true]); // either would have fit alone
  assertEquals([status, ...lines(messages).slice(1)], [
    "done",
    "call help help",
    "ok Helped.",
    "ok Only this much.",
    "assistant Done.",
  ]);
  assertEquals(asked.requests.map(isLast), [false, false]);
});

Deno.test("budget() starts no subagent when nothing is left", async () => {
  const spend = budget({ tokens: 1_200 });
  const model = scripted({ text: "Helped.", usage: { input: 1_000, output: 400 } }, "Never.");
  const helper = agent({ name: "helper", model, use: [spend] });
  const one = (prompt: string) => ({ calls: [["help", { prompt }] as const] });
  const asking = scripted(one("One"), (request) => isLast(request) ? "Stop." : one("Two"));
  const tools = [asTool(helper, { name: "help", description: "" })];
  const { status, text } = await agent({ model: asking, tools, use: [spend] }).run("Hi").result;
  assertEquals([status, text, model.left], ["limit", "Stop.", 1]);

  const broke = budget({ tokens: 0 });
  const { run } = parent(agent({ model: scripted(), use: [broke] }), 1, [{
    ...broke,
    name: "without its model hook",
    model: (_, next) => next(),
    execute: (_, next) => next(),
  }]);
  assertEquals(lines((await run().result).messages)[2], "error agent did not finish: the budget is spent");
});

Deno.test("budget() is separate for each run, and for subagents that do not share it", async () => {
  const own = budget({ tokens: 1_100, name: "own" });
  const whole = budget({ tokens: 100_000 });
  const model = scripted(
    { text: "One.", usage: { input: 1_000, output: 0 } },
    { text: "Two.", usage: { input: 1_000, output: 0 } },
  );
  const helper = agent({ name: "helper", model, use: [whole, own] });
  const { run } = parent(helper, 2, [whole]);
  const { status, messages } = await run().result;
  assertEquals([status, ...lines(messages).slice(2, 4)], ["done", "ok One.", "ok Two."]);
  assertEquals(model.requests.map(isLast), [false, false]);

  const assistant = agent({ model: scripted("One.", "Two."), use: [budget({ tokens: 1_010 })] });
  for (const text of ["One.", "Two."]) {
    const result = await assistant.run("Hi").result;
    assertEquals([result.status, result.text], ["done", text]);
  }
});

Deno.test("two budgets of one agent have two names", async () => {
  const tokens = budget({ tokens: 5_000 });
  const calls = budget({ calls: 1, name: "calls" });
  const seen: number[] = [];
  const note: Middleware = {
    name: "note",
    async prompt(ctx, next) {
      const answer = await next();
      seen.push(tokens.left(ctx).tokens, calls.left(ctx).calls);
      return answer;
    },
  };
  const model = scripted(looking(2), "Enough.");
  const { reason } = await agent({ model, tools: [look], use: [note, tokens, calls] }).run("Hi").result;
  assertEquals([reason, seen], ["calls", [4_996, 0]]);
});

Deno.test("budget() does not affect ends, pauses and cancellations", async () => {
  const ending: Middleware = {
    name: "ending",
    tool: (ctx) => Promise.reject(ctx.run.end("enough")),
  };
  assertEquals((await spent({ calls: 1 }, [looking(1)], (spend) => [spend, ending])).end, ["cancelled", "enough", ""]);
  const refusing: Middleware = {
    name: "refusing",
    async prompt(_, next) {
      await next();
      return { status: "cancelled", text: "", reason: "No." };
    },
  };
  assertEquals((await spent({ tokens: 0 }, ["Done."], (spend) => [spend, refusing])).end, ["cancelled", "No.", ""]);
});

Deno.test("budget() throws for invalid limits", () => {
  for (const option of ["tokens", "cost", "calls", "ms", "reserve"]) {
    for (const value of [-1, NaN]) {
      const message = `Cannot budget ${value} for "${option}": expected a number of 0 or more`;
      assertThrows(() => budget({ [option]: value }), RangeError, message);
    }
  }
});

Deno.test("budget() throws for invalid prices", () => {
  for (
    const price of [{ input: -1, output: 1 }, { input: 1, output: NaN }, { input: 1, output: 1, cached: -1 }, {
      input: 1,
      output: 1,
      cacheWrite: -1,
    }, { input: 1, output: 1, reasoning: NaN }]
  ) {
    assertThrows(
      () => budget({ prices: { scripted: price } }),
      RangeError,
      ' of "scripted": expected a number of 0 or more',
    );
  }
});

Deno.test("budget() obeys the laws of middleware", async () => {
  await testMiddleware(() => budget({ tokens: 1_000_000, calls: 1_000, ms: 60_000 }));
  await testMiddleware(() => budget({ tokens: 1_050, calls: 2 }));
});

Deno.test("budget() counts the tokens of a compaction", async () => {
  const spend = budget({ tokens: 1_000 });
  const left: number[] = [];
  const summarize: Middleware = {
    name: "summarize",
    compact: () => Promise.resolve({ ...compacted([user("Brief")]), usage: { input: 200, output: 100 } }),
  };
  const note: Middleware = {
    name: "note",
    stop: (ctx, next) => {
      left.push(spend.left(ctx).tokens);
      return next();
    },
  };
  const model = scripted({ text: "Hello!", usage: { input: 5, output: 5 } });
  const use = [spend, note, summarize, compaction({ summarize: false })];
  await agent({ model, use, limits: { context: 1 } }).run("A rather long prompt").result;
  assertEquals(left, [690]);
});
