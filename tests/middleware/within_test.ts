import { agent, type Middleware, ModelError, tool } from "@jizai/jizai";
import { optional } from "@jizai/jizai/middleware/optional";
import { within } from "@jizai/jizai/middleware/within";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { passThroughHooks } from "../support/pass_through_hooks.ts";
import { lines } from "../support/transcript_lines.ts";

/** Resolves after `ms` milliseconds, and has no signal. */
function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A hook at `prompt` that takes `before` and `after` milliseconds of its own. */
function slow(before: number, after: number): Middleware {
  return {
    name: "slow",
    async prompt(_, next) {
      await sleep(before);
      const answer = await next();
      await sleep(after);
      return answer;
    },
  };
}

/** A model that takes `ms` milliseconds to answer. */
function thinking(ms: number) {
  return scripted({ text: "Hello!", before: () => sleep(ms) });
}

Deno.test("within() obeys the laws of middleware", async () => {
  await testMiddleware(() => within(1_000, { name: "all", ...passThroughHooks }));
});

Deno.test("within() does not count the time inside next()", async () => {
  using time = new FakeTime();
  const result = await advanceUntilSettled(
    time,
    agent({ model: thinking(10_000), use: [within(100, slow(50, 49))] }).run("Hi").result,
  );
  assertEquals(result.text, "Hello!");
});

Deno.test("within() counts the time before and after next() together", async () => {
  using time = new FakeTime();
  const result = await advanceUntilSettled(
    time,
    agent({ model: thinking(10_000), use: [within(100, slow(50, 51))] }).run("Hi").result,
  );
  assertEquals([result.status, String(result.error)], ["failed", "TimeoutError: slow took more than 100 ms at prompt"]);
});

Deno.test("within() starts no timer with a negative time, about which runtimes warn, if a hook blocks for longer than its time", async () => {
  const { setTimeout } = globalThis;
  const times: number[] = [];
  globalThis.setTimeout = ((run: () => void, ms = 0) => {
    times.push(ms);
    return setTimeout(run, ms);
  }) as typeof setTimeout; // the types of Deno and of Node differ
  const blocking: Middleware = {
    name: "blocking",
    prompt(_, next) {
      for (const end = Date.now() + 5; Date.now() < end;);
      return next();
    },
  };
  try {
    await agent({ model: scripted("Hello!"), use: [within(2, blocking)] }).run({ prompt: "Hi", onError() {} }).result;
  } finally {
    globalThis.setTimeout = setTimeout;
  }
  assertEquals([times.length > 0, times.filter((ms) => ms < 0)], [true, []]);
});

Deno.test("within() limits each hook separately", async () => {
  using time = new FakeTime();
  const { prompt } = slow(40, 40);
  const session: Middleware["session"] = async (_, next) => {
    await sleep(60);
    return await next();
  };
  const result = await advanceUntilSettled(
    time,
    agent({ model: thinking(0), use: [within(100, { name: "both", session, ...(prompt && { prompt }) })] })
      .run("Hi").result,
  );
  assertEquals(result.status, "done");
});

Deno.test("within() limits every call of a hook separately", async () => {
  using time = new FakeTime();
  const model = scripted({ calls: [["wait", {}]] }, { calls: [["wait", {}]] }, "Done.");
  const wait = tool({ name: "wait", description: "", input: z.object({}), execute: () => "Waited." });
  const turn: Middleware["turn"] = async (_, next) => {
    await sleep(60);
    return await next();
  };
  const result = await advanceUntilSettled(
    time,
    agent({ model, tools: [wait], use: [within(100, { name: "slow", turn })] }).run("Hi").result,
  );
  assertEquals(result.status, "done");
});

Deno.test("within() aborts the signal that the hook sees, and no other", async () => {
  using time = new FakeTime();
  const seen: string[] = [];
  const note = (who: string, { reason }: AbortSignal) => seen.push(`${who}: ${reason}`);
  const above: Middleware = {
    name: "above",
    prompt: (ctx, next) => next().finally(() => note("above", ctx.signal)),
  };
  const stuck: Middleware = {
    name: "stuck",
    prompt: (ctx) =>
      new Promise(() => ctx.signal.addEventListener("abort", () => note("stuck", ctx.signal), { once: true })),
  };
  const result = await advanceUntilSettled(
    time,
    agent({ model: scripted(), use: [above, within(100, stuck)] }).run("Hi").result,
  );
  assertEquals(result.status, "failed");
  assertEquals(seen, ["stuck: TimeoutError: stuck took more than 100 ms at prompt", "above: undefined"]);
});

Deno.test("within() abandons the hook: its next() throws and its answer is dropped", async () => {
  using time = new FakeTime();
  const model = thinking(1_000);
  const seen: string[] = [];
  const late: Middleware = {
    name: "late",
    async prompt(_, next) {
      await sleep(200);
      next(); // who was left behind may forget to look
      await next().catch((error) => seen.push(String(error)));
      return { status: "done", text: "Too late." };
    },
  };
  const result = await advanceUntilSettled(time, agent({ model, use: [optional(within(100, late))] }).run("Hi").result);
  assertEquals(result.text, "Hello!");
  assertEquals(seen, ["TimeoutError: late took more than 100 ms at prompt"]);
  model.done();
});

Deno.test("within() denies a call whose guard takes too long", async () => {
  using time = new FakeTime();
  const guard: Middleware = { name: "guard", approval: () => new Promise(() => {}) };
  const work = tool({ name: "work", description: "", input: z.object({}), execute: () => "Worked." });
  const model = scripted({ calls: [["work", {}]] }, "Done.");
  const result = await advanceUntilSettled(
    time,
    agent({ model, tools: [work], use: [optional(within(100, guard))] }).run("Go").result,
  );
  assertEquals(lines(result.messages), [
    "user Go",
    "call work",
    "denied A guard failed.",
    "assistant Done.",
  ]);
});

Deno.test("within() does not count the time in which a call waits for its batch", async () => {
  using time = new FakeTime();
  const work = tool({ name: "work", description: "", input: z.object({}), execute: () => sleep(1_000) });
  const model = scripted({ calls: [["work", {}], ["work", {}]] }, "Done.");
  const quick: Middleware = {
    name: "quick",
    async tool(_, next) {
      await sleep(20);
      const result = await next();
      await sleep(20);
      return result;
    },
  };
  const result = await advanceUntilSettled(
    time,
    agent({ model, tools: [work], use: [within(50, quick)] }).run("Go").result,
  );
  assertEquals(result.status, "done");
});

Deno.test("within() lets a hook handle a failure of next()", async () => {
  using time = new FakeTime();
  const model = scripted({ error: new ModelError("busy"), before: () => sleep(1_000) }, "Hello!");
  const patient: Middleware = {
    name: "patient",
    async model(_, next) {
      await sleep(40);
      try {
        return await next();
      } catch {
        await sleep(40);
        return await next();
      }
    },
  };
  const result = await advanceUntilSettled(time, agent({ model, use: [within(100, patient)] }).run("Hi").result);
  assertEquals(result.text, "Hello!");
});

Deno.test("within() passes on the error of a hook", async () => {
  const broken = new Error("broken");
  const sync: Middleware = {
    name: "sync",
    prompt() {
      throw broken;
    },
  };
  const later: Middleware = { name: "later", prompt: () => Promise.reject(broken) };
  const ending: Middleware = { name: "ending", prompt: (ctx) => Promise.reject(ctx.run.end("enough")) };
  const results = [sync, later, ending].map((middleware) =>
    agent({ model: scripted(), use: [within(100, middleware)] }).run("Hi").result
  );
  assertEquals((await Promise.all(results)).map(({ status, error }) => [status, error]), [
    ["failed", broken],
    ["failed", broken],
    ["cancelled", undefined],
  ]);
});

Deno.test("within() aborts the hook's signal when the run is stopped", async () => {
  const reached = Promise.withResolvers<void>();
  const waiting: Middleware = {
    name: "waiting",
    prompt: ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        reached.resolve();
      }),
  };
  const run = agent({ model: scripted(), use: [within(100_000, waiting)] }).run("Hi");
  await reached.promise;
  run.stop("enough");
  const { status, reason } = await run.result;
  assertEquals([status, reason], ["aborted", "enough"]);
});

Deno.test("within() leaves no timer if the hook does not await next()", async () => {
  const hasty: Middleware = {
    name: "hasty",
    prompt(_, next) {
      next();
      return Promise.resolve({ status: "done", text: "" });
    },
  };
  const { status, error } = await agent({ model: scripted("Hello!"), use: [within(100_000, hasty)] }).run("Hi").result;
  assertEquals([status, String(error)], ["failed", `TypeError: Cannot leave prompt: "hasty" did not await next()`]);
});

Deno.test("within() throws for an invalid time", () => {
  for (const ms of [0, -1, NaN, Infinity, 2 ** 31]) {
    assertThrows(
      () => within(ms, {}),
      RangeError,
      `Cannot create within(): the time is ${ms}; expected a positive number up to 2147483647 milliseconds`,
    );
  }
});
