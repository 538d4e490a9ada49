import { agent, type Middleware, ModelError, tool, ToolError } from "@jizai/jizai";
import { type Failure, retry, type RetryOptions } from "@jizai/jizai/middleware/retry";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { eventLines, eventsOfRun, startedOver } from "../support/run_events.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { lines } from "../support/transcript_lines.ts";

const busy = new ModelError("busy", { recoverable: true });
const quickly = { delay: 0 };

/** Runs a model that fails with `failures` and then answers. Returns the result, the number of requests, and the reported errors. */
async function asked(use: readonly Middleware[], ...failures: readonly ScriptedStep[]) {
  const errors: unknown[] = [];
  const model = scripted(...failures, "Hello!");
  const { status, text } = await agent({ model, use }).run({ prompt: "Hi", onError: (error) => errors.push(error) })
    .result;
  return { status, text, requests: model.requests.length, errors };
}

/** Returns the times of the requests to a model that fails with each of `errors`, in milliseconds from the first request. */
async function timesOf(options: RetryOptions, random: number, ...errors: readonly unknown[]): Promise<number[]> {
  using time = new FakeTime();
  using _ = stub(Math, "random", () => random);
  const times: number[] = [];
  const before = () => void times.push(time.now - time.start);
  const steps = errors.map((error) => ({ error, before }));
  const model = scripted(...steps, { text: "Hello!", before });
  await advanceUntilSettled(time, agent({ model, use: [retry(options)] }).run("Hi").result);
  return times;
}

/** Creates a tool whose first `failures` calls fail for each `n`. */
function flaky(failures: number, { error = new Error("down"), idempotent = true }: {
  readonly error?: unknown;
  readonly idempotent?: boolean;
} = {}) {
  const calls: string[] = [];
  const fetch = tool({
    name: "fetch",
    description: "Fetches",
    input: z.object({ n: z.number() }),
    idempotent,
    execute({ n }, { idempotencyKey, run }) {
      calls.push(`${n} ${idempotencyKey.replace(run.id, "run")}`);
      if (calls.filter((call) => call.startsWith(`${n} `)).length <= failures) throw error;
      return `Fetched ${n}.`;
    },
  });
  return { calls, fetch };
}

Deno.test("retry() obeys the laws of middleware", async () => {
  await testMiddleware(() => retry({ attempts: 2, delay: 1 }));
});

Deno.test("retry() repeats a request after a recoverable failure", async () => {
  const { text, requests, errors } = await asked([retry(quickly)], { error: busy }, { error: busy });
  assertEquals([text, requests, errors], ["Hello!", 3, [busy, busy]]);
});

Deno.test("retry() repeats a request after a timeout", async () => {
  const late = new DOMException("late", "TimeoutError");
  const { text, requests } = await asked([retry(quickly)], { error: late });
  assertEquals([text, requests], ["Hello!", 2]);
});

Deno.test("retry() does not repeat a request after a permanent failure", async () => {
  const errors = [new ModelError("refused"), new Error("bug"), new DOMException("gone", "AbortError"), "odd"];
  for (const error of errors) {
    const outcome = await asked([retry(quickly)], { error });
    assertEquals(outcome, { status: "failed", text: "", requests: 1, errors: [error] });
  }
});

Deno.test("retry() fails with the last failure after the last attempt", async () => {
  const failures = [busy, busy, new ModelError("still busy", { recoverable: true })];
  const outcome = await asked([retry(quickly)], ...failures.map((error) => ({ error })));
  assertEquals(outcome, { status: "failed", text: "", requests: 3, errors: failures });
});

Deno.test("retry({ attempts: 1 }) makes one attempt", async () => {
  const { requests } = await asked([retry({ attempts: 1 })], { error: busy });
  assertEquals(requests, 1);
});

Deno.test("retry() doubles its wait with every attempt, up to `max`", async () => {
  const times = await timesOf({ attempts: 5, delay: 100, max: 350 }, 1, busy, busy, busy, busy);
  assertEquals(times, [0, 100, 300, 650, 1_000]);
});

Deno.test("retry() waits for a random part of the backoff", async () => {
  assertEquals(await timesOf({ delay: 100 }, 0.5, busy, busy), [0, 50, 150]);
  assertEquals(await timesOf({ delay: 100 }, 0, busy, busy), [0, 0, 0]);
});

Deno.test("retry() waits at least as long as the provider asks for", async () => {
  const later = new ModelError("later", { recoverable: true, retryAfter: 5_000 });
  assertEquals(await timesOf({ delay: 100 }, 1, later, busy), [0, 5_000, 5_200]);
  assertEquals(await timesOf({ delay: 8_000 }, 1, later), [0, 8_000]);
});

Deno.test("retry() fails if the provider asks for a longer wait than `max`", async () => {
  const tomorrow = new ModelError("tomorrow", { recoverable: true, retryAfter: 86_400_000 });
  assertEquals(await timesOf({}, 1, tomorrow), [0]);
});

Deno.test("retry() repeats a request after only thoughts and calls were emitted, and emits model.reset", async () => {
  const { fetch } = flaky(0);
  const model = scripted({ reasoning: "Hm.", calls: [["fetch", { n: 1 }]], error: busy }, "Hello!");
  const events = await eventsOfRun(agent({ model, tools: [fetch], use: [retry(quickly)] }).run("Hi"));
  const shown = ["reasoning.delta 1 0 Hm.", 'call.delta 1 call_1 fetch {"n":1}', "call.ready 1"];
  assertEquals(eventLines(events), startedOver(...shown));
});

Deno.test("retry() does not repeat a request after text was emitted", async () => {
  const { status, text, requests } = await asked([retry(quickly)], { text: "Hel", error: busy });
  assertEquals([status, text, requests], ["failed", "Hel", 1]);
});

Deno.test("retry({ afterText: true }) repeats a request after text was emitted, and emits model.reset", async () => {
  const model = scripted({ text: "Hel", error: busy }, "Hello!");
  const events = await eventsOfRun(agent({ model, use: [retry({ ...quickly, afterText: true })] }).run("Hi"));
  assertEquals(eventLines(events), startedOver("text.delta 1 0 Hel"));
});

Deno.test("retry() ignores text that an inner hook held back", async () => {
  const holding: Middleware = {
    name: "holding",
    model: (ctx, next) => next({ emit: (event) => event.type === "text.delta" ? undefined : ctx.emit(event) }),
  };
  const { text, requests } = await asked([retry(quickly), holding], { text: "Hel", error: busy });
  assertEquals([text, requests], ["Hello!", 2]);
});

Deno.test("retry() counts the attempts of each turn separately", async () => {
  const { fetch } = flaky(0);
  const model = scripted({ error: busy }, { calls: [["fetch", { n: 1 }]] }, { error: busy }, "Done.");
  const { messages } = await agent({ model, tools: [fetch], use: [retry({ ...quickly, attempts: 2 })] }).run("Go")
    .result;
  assertEquals(lines(messages), ["user Go", "call fetch", "ok Fetched 1.", "assistant Done."]);
});

Deno.test("retry() calls `when` with the error, the point and the attempt", async () => {
  const seen: [unknown, Failure][] = [];
  const when = (error: unknown, failure: Failure) => {
    seen.push([error, failure]);
    return error !== "enough";
  };
  const { fetch } = flaky(Infinity, { error: "enough" });
  const model = scripted({ error: "odd" }, { error: "odd" }, { calls: [["fetch", { n: 1 }]] }, "Done.");
  const { messages } = await agent({ model, tools: [fetch], use: [retry({ ...quickly, when })] }).run("Go").result;
  assertEquals(lines(messages), ["user Go", "call fetch", "error fetch failed.", "assistant Done."]);
  assertEquals(seen, [
    ["odd", { point: "model", attempt: 1 }],
    ["odd", { point: "model", attempt: 2 }],
    ["enough", { point: "execute", tool: "fetch", attempt: 1 }],
  ]);
});

Deno.test("retry() executes an idempotent tool again with the same idempotency key, each call separately", async () => {
  using time = new FakeTime();
  const { calls, fetch } = flaky(2);
  const model = scripted({ calls: [["fetch", { n: 1 }], ["fetch", { n: 2 }]] }, "Done.");
  const run = agent({ model, tools: [fetch], use: [retry(quickly)] }).run("Go");
  const { messages } = await advanceUntilSettled(time, run.result);
  assertEquals(lines(messages), ["user Go", "call fetch fetch", "ok Fetched 1.", "ok Fetched 2.", "assistant Done."]);
  assertEquals(calls, [
    "1 run:1:0",
    "2 run:1:1",
    "1 run:1:0",
    "2 run:1:1",
    "1 run:1:0",
    "2 run:1:1",
  ]);
});

Deno.test("retry() sends the last failure of a tool to the model", async () => {
  const { calls, fetch } = flaky(Infinity, { error: new Error("404") });
  const model = scripted({ calls: [["fetch", { n: 1 }]] }, "Done.");
  const { messages } = await agent({ model, tools: [fetch], use: [retry(quickly)] }).run("Go").result;
  assertEquals([calls.length, lines(messages)], [3, [
    "user Go",
    "call fetch",
    "error fetch failed.",
    "assistant Done.",
  ]]);
});

Deno.test("retry() does not repeat a tool that is not idempotent or throws a ToolError, whatever `when` returns", async () => {
  const seen: unknown[] = [];
  const when = (error: unknown) => {
    seen.push(error);
    return true;
  };
  const error = new ToolError("No such page.");
  const tools = [flaky(Infinity, { idempotent: false }), flaky(Infinity, { error })];
  for (const { calls, fetch } of tools) {
    for (const options of [quickly, { ...quickly, when }]) {
      const model = scripted({ calls: [["fetch", { n: 1 }]] }, "Done.");
      await agent({ model, tools: [fetch], use: [retry(options)] }).run("Go").result;
    }
    assertEquals(calls.length, 2);
  }
  assertEquals(seen, []);
});

Deno.test("retry() does not repeat an interrupt of an inner hook", async () => {
  const { calls, fetch } = flaky(0);
  const ending: Middleware = { name: "ending", execute: (ctx) => Promise.reject(ctx.run.end("enough")) };
  const pausing: Middleware = { name: "pausing", model: (ctx) => Promise.reject(ctx.run.pause("Really?")) };
  const model = () => scripted({ calls: [["fetch", { n: 1 }]] });
  const results = [ending, pausing].map((middleware) =>
    agent({ model: model(), tools: [fetch], use: [retry({ when: () => true }), middleware] }).run("Go").result
  );
  const ended = await Promise.all(results);
  assertEquals([ended.map(({ status }) => status), calls], [["cancelled", "paused"], []]);
});

Deno.test("retry() stops waiting when the run is stopped", async () => {
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

Deno.test("retry() does not repeat a failure that the stop of the run caused", async () => {
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

Deno.test("retry() throws for invalid attempts and times", () => {
  for (const attempts of [0, -1, 1.5, NaN, Infinity]) {
    assertThrows(
      () => retry({ attempts }),
      RangeError,
      `Cannot create retry(): \`attempts\` is ${attempts}; expected a whole number of 1 or more`,
    );
  }
  for (const ms of [-1, NaN, Infinity, 2 ** 31]) {
    const message = (name: string) =>
      `Cannot create retry(): \`${name}\` is ${ms}; expected 0 to 2147483647 milliseconds`;
    assertThrows(() => retry({ delay: ms }), RangeError, message("delay"));
    assertThrows(() => retry({ max: ms }), RangeError, message("max"));
  }
});
