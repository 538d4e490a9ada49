import { agent, type Middleware, ModelError, tool, ToolError } from "@jizai/jizai";
import { type Failure, retry, type RetryOptions } from "@jizai/jizai/middleware/retry";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { happened, startedOver, told } from "../support/happened.ts";
import { meanwhile } from "../support/meanwhile.ts";
import { lines } from "../support/told.ts";

const busy = new ModelError("busy", { recoverable: true });
const quickly = { delay: 0 };

/** Asks a model that fails so, and would then say hello; gives the result, the requests, and what the operator was told. */
async function asked(use: readonly Middleware[], ...failures: readonly ScriptedStep[]) {
  const errors: unknown[] = [];
  const model = scripted(...failures, "Hello!");
  const { status, text } = await agent({ model, use }).run({ prompt: "Hi", onError: (error) => errors.push(error) })
    .result;
  return { status, text, requests: model.requests.length, errors };
}

/** When a model is asked that fails with each of `errors`, in milliseconds from the first request on. */
async function timesOf(options: RetryOptions, random: number, ...errors: readonly unknown[]): Promise<number[]> {
  using time = new FakeTime();
  using _ = stub(Math, "random", () => random);
  const times: number[] = [];
  const before = () => void times.push(time.now - time.start);
  const steps = errors.map((error) => ({ error, before }));
  const model = scripted(...steps, { text: "Hello!", before });
  await meanwhile(time, agent({ model, use: [retry(options)] }).run("Hi").result);
  return times;
}

/** A tool that fails for the first `failures` times that it is called for `n`. */
function flaky(failures: number, error: unknown = new Error("down")) {
  const calls: string[] = [];
  const fetch = tool({
    name: "fetch",
    description: "Fetches",
    input: z.object({ n: z.number() }),
    execute({ n }, { idempotencyKey, run }) {
      calls.push(`${n} ${idempotencyKey.replace(run.id, "run")}`);
      if (calls.filter((call) => call.startsWith(`${n} `)).length <= failures) throw error;
      return `Fetched ${n}.`;
    },
  });
  return { calls, fetch };
}

Deno.test("retry() keeps the laws of middleware", async () => {
  await testMiddleware(() => retry({ attempts: 2, delay: 1 }));
});

Deno.test("retry() asks again after a recoverable failure", async () => {
  const { text, requests, errors } = await asked([retry(quickly)], { error: busy }, { error: busy });
  assertEquals([text, requests, errors], ["Hello!", 3, [busy, busy]]);
});

Deno.test("retry() asks again after a timeout", async () => {
  const late = new DOMException("late", "TimeoutError");
  const { text, requests } = await asked([retry(quickly)], { error: late });
  assertEquals([text, requests], ["Hello!", 2]);
});

Deno.test("retry() leaves a failure alone that another try cannot help", async () => {
  const errors = [new ModelError("refused"), new Error("bug"), new DOMException("gone", "AbortError"), "odd"];
  for (const error of errors) {
    const outcome = await asked([retry(quickly)], { error });
    assertEquals(outcome, { status: "failed", text: "", requests: 1, errors: [error] });
  }
});

Deno.test("retry() gives up after the last try, with the last failure", async () => {
  const failures = [busy, busy, new ModelError("still busy", { recoverable: true })];
  const outcome = await asked([retry(quickly)], ...failures.map((error) => ({ error })));
  assertEquals(outcome, { status: "failed", text: "", requests: 3, errors: failures });
});

Deno.test("retry() tries once where it has one attempt", async () => {
  const { requests } = await asked([retry({ attempts: 1 })], { error: busy });
  assertEquals(requests, 1);
});

Deno.test("retry() waits twice as long each time, up to a bound", async () => {
  const times = await timesOf({ attempts: 5, delay: 100, max: 350 }, 1, busy, busy, busy, busy);
  assertEquals(times, [0, 100, 300, 650, 1_000]);
});

Deno.test("retry() leaves to chance how long it waits", async () => {
  assertEquals(await timesOf({ delay: 100 }, 0.5, busy, busy), [0, 50, 150]);
  assertEquals(await timesOf({ delay: 100 }, 0, busy, busy), [0, 0, 0]);
});

Deno.test("retry() comes back when the provider says, and not before", async () => {
  const later = new ModelError("later", { recoverable: true, retryAfter: 5_000 });
  assertEquals(await timesOf({ delay: 100 }, 1, later, busy), [0, 5_000, 5_200]);
  assertEquals(await timesOf({ delay: 8_000 }, 1, later), [0, 8_000]);
});

Deno.test("retry() does not come back where the provider asks for more than it would wait", async () => {
  const tomorrow = new ModelError("tomorrow", { recoverable: true, retryAfter: 86_400_000 });
  assertEquals(await timesOf({}, 1, tomorrow), [0]);
});

Deno.test("retry() asks again where only thoughts and calls were shown, and they are taken back", async () => {
  const { fetch } = flaky(0);
  const model = scripted({ reasoning: "Hm.", calls: [["fetch", { n: 1 }]], error: busy }, "Hello!");
  const events = await happened(agent({ model, tools: [fetch], use: [retry(quickly)] }).run("Hi"));
  const shown = ["reasoning.delta 1 0 Hm.", 'call.delta 1 call_1 fetch {"n":1}', "call.ready 1"];
  assertEquals(told(events), startedOver(...shown));
});

Deno.test("retry() does not ask again once text was shown", async () => {
  const { status, text, requests } = await asked([retry(quickly)], { text: "Hel", error: busy });
  assertEquals([status, text, requests], ["failed", "Hel", 1]);
});

Deno.test("retry() asks again after text where it may, and whoever watches starts over", async () => {
  const model = scripted({ text: "Hel", error: busy }, "Hello!");
  const events = await happened(agent({ model, use: [retry({ ...quickly, afterText: true })] }).run("Hi"));
  assertEquals(told(events), startedOver("text.delta 1 0 Hel"));
});

Deno.test("retry() counts text as shown by what got through to it", async () => {
  const holding: Middleware = {
    name: "holding",
    model: (ctx, next) => next({ emit: (event) => event.type === "text.delta" ? undefined : ctx.emit(event) }),
  };
  const { text, requests } = await asked([retry(quickly), holding], { text: "Hel", error: busy });
  assertEquals([text, requests], ["Hello!", 2]);
});

Deno.test("retry() begins anew with every turn", async () => {
  const { fetch } = flaky(0);
  const model = scripted({ error: busy }, { calls: [["fetch", { n: 1 }]] }, { error: busy }, "Done.");
  const { messages } = await agent({ model, tools: [fetch], use: [retry({ ...quickly, attempts: 2 })] }).run("Go")
    .result;
  assertEquals(lines(messages), ["user Go", "call fetch", "ok Fetched 1.", "assistant Done."]);
});

Deno.test("retry() asks its condition, with what failed and where", async () => {
  const seen: [unknown, Failure][] = [];
  const when = (error: unknown, failure: Failure) => {
    seen.push([error, failure]);
    return error !== "enough";
  };
  const { fetch } = flaky(Infinity, "enough");
  const model = scripted({ error: "odd" }, { error: "odd" }, { calls: [["fetch", { n: 1 }]] }, "Done.");
  const { messages } = await agent({ model, tools: [fetch], use: [retry({ ...quickly, when })] }).run("Go").result;
  assertEquals(lines(messages), ["user Go", "call fetch", "error fetch failed.", "assistant Done."]);
  assertEquals(seen, [
    ["odd", { point: "model", attempt: 1 }],
    ["odd", { point: "model", attempt: 2 }],
    ["enough", { point: "execute", tool: "fetch", attempt: 1 }],
  ]);
});

Deno.test("retry() executes a tool again, under the same idempotency key, each call by itself", async () => {
  using time = new FakeTime();
  const { calls, fetch } = flaky(2);
  const model = scripted({ calls: [["fetch", { n: 1 }], ["fetch", { n: 2 }]] }, "Done.");
  const run = agent({ model, tools: [fetch], use: [retry(quickly)] }).run("Go");
  const { messages } = await meanwhile(time, run.result);
  assertEquals(lines(messages), ["user Go", "call fetch fetch", "ok Fetched 1.", "ok Fetched 2.", "assistant Done."]);
  assertEquals(calls, [
    "1 run:call_1:1",
    "2 run:call_2:1",
    "1 run:call_1:1",
    "2 run:call_2:1",
    "1 run:call_1:1",
    "2 run:call_2:1",
  ]);
});

Deno.test("retry() leaves the last failure of a tool to be told to the model", async () => {
  const { calls, fetch } = flaky(Infinity, new ToolError("No such page."));
  const model = scripted({ calls: [["fetch", { n: 1 }]] }, "Done.");
  const { messages } = await agent({ model, tools: [fetch], use: [retry(quickly)] }).run("Go").result;
  assertEquals([calls.length, lines(messages)], [3, [
    "user Go",
    "call fetch",
    "error No such page.",
    "assistant Done.",
  ]]);
});

Deno.test("retry() lets a hook beneath it end or pause the run", async () => {
  const { calls, fetch } = flaky(0);
  const ending: Middleware = { name: "ending", execute: (ctx) => Promise.reject(ctx.run.end("enough")) };
  const pausing: Middleware = { name: "pausing", model: (ctx) => Promise.reject(ctx.run.pause("Really?")) };
  const model = () => scripted({ calls: [["fetch", { n: 1 }]] });
  const results = [ending, pausing].map((middleware) =>
    agent({ model: model(), tools: [fetch], use: [retry({ when: () => true }), middleware] }).run("Go").result
  );
  const ended = await Promise.all(results);
  assertEquals([ended.map(({ status }) => status), calls], [["done", "paused"], []]);
});

Deno.test("retry() does not wait, nor try again, once the run is stopped", async () => {
  const errors: unknown[] = [];
  const waiting = Promise.withResolvers<void>();
  const onError = (error: unknown) => {
    errors.push(error);
    waiting.resolve();
  };
  using _ = stub(Math, "random", () => 1);
  const model = scripted({ error: busy }, "Hello!");
  const run = agent({ model, use: [retry({ delay: 20_000 })] }).run({ prompt: "Hi", onError });
  await waiting.promise;
  run.stop("enough");
  const { status, reason } = await run.result;
  assertEquals([status, reason, model.requests.length, errors], ["aborted", "enough", 1, [busy]]);
});

Deno.test("retry() does not try again what the stop of the run made fail", async () => {
  const reached = Promise.withResolvers<void>();
  const model = scripted({
    before: (_, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(busy), { once: true });
        reached.resolve();
      }),
  }, "Hello!");
  const run = agent({ model, use: [retry(quickly)] }).run("Hi");
  await reached.promise;
  run.stop();
  assertEquals([(await run.result).status, model.requests.length], ["aborted", 1]);
});

Deno.test("retry() refuses attempts and times that are none", () => {
  for (const attempts of [0, -1, 1.5, NaN, Infinity]) {
    assertThrows(
      () => retry({ attempts }),
      RangeError,
      `Cannot retry with ${attempts} attempts: expected a whole number of 1 or more`,
    );
  }
  for (const ms of [-1, NaN, Infinity, 2 ** 31]) {
    const message = `Cannot retry after ${ms} ms: expected 0 or more, and 24 days at most`;
    assertThrows(() => retry({ delay: ms }), RangeError, message);
    assertThrows(() => retry({ max: ms }), RangeError, message);
  }
});
