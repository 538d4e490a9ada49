import {
  abortRun,
  agent,
  type Middleware,
  refused,
  skip,
  text,
  textOf,
  tool,
  type ToolExecutionContext,
  type ToolResult,
  tryAgain,
} from "@jizai/jizai";
import { scripted, type ScriptedAnswer } from "@jizai/jizai/model/scripted";
import { assertEquals, assertNotEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { at, batch, call, drop, gauge, runBatch, settled, three, watch, weather } from "../support/batch.ts";
import { named } from "../support/run_events.ts";
import { asTool } from "@jizai/jizai/subagents";

/** A tool that never settles and ignores its signal, for the city `b`. */
const ignoresSignal = weather(({ city }) => city === "b" ? new Promise(() => {}) : `sun in ${city}`);

Deno.test("a tool receives its call, batch, index and turn", async () => {
  const seen: Pick<ToolExecutionContext, "callId" | "batchId" | "callIndex" | "turn" | "idempotencyKey">[] = [];
  const look = weather((_, { callId, batchId, callIndex, turn, idempotencyKey }) => {
    seen.push({ callId, batchId, callIndex, turn, idempotencyKey });
  });
  const model = scripted({ calls: three }, { calls: [call("d")] }, "Done.");
  const assistant = agent({
    model,
    tools: [look],
    use: [at("b", { tool: () => Promise.resolve(text("answered")) })],
  });
  const result = await assistant.run("Hi").result;
  assertEquals(named(seen, result), [
    { callId: "a", batchId: "run:1", callIndex: 0, turn: 1, idempotencyKey: "run:1:0" },
    { callId: "c", batchId: "run:1", callIndex: 2, turn: 1, idempotencyKey: "run:1:2" },
    { callId: "d", batchId: "run:2", callIndex: 0, turn: 2, idempotencyKey: "run:2:0" },
  ]);
});

Deno.test("a call that enters again after a pause has a new batch, and the same index, turn and key", async () => {
  const seen: string[] = [];
  const look: Middleware = {
    name: "look",
    async tool({ call, batchId, index, turn, resumed }, next) {
      seen.push(`tool ${call.id} ${batchId} ${index} ${turn} ${resumed}`);
      return await next();
    },
    async execute({ callId, batchId, callIndex, turn, idempotencyKey }, next) {
      seen.push(`execute ${callId} ${batchId} ${callIndex} ${turn} ${idempotencyKey}`);
      return await next();
    },
  };
  const started = batch([call("a"), call("b", { name: "drop" })], { tools: [weather(), drop()], use: [look] });
  const { result } = await started.run().outcome;
  await started.resume(result.session, [{ callId: "b", type: "approve" }]).outcome;
  assertEquals(named(seen, result), [
    "tool a run:1 0 1 false",
    "tool b run:1 1 1 false",
    "execute a run:1 0 1 run:1:0",
    "tool b run:2 1 1 true",
    "execute b run:2 1 1 run:1:1",
  ]);
});

Deno.test("a call with an id that the session contains gets a new id", async () => {
  const keys: string[] = [];
  const look = weather((_, { callId, idempotencyKey }) => keys.push(`${callId} ${idempotencyKey}`));
  const assistant = agent({
    model: scripted({ calls: [call("a"), call("a")] }, { calls: [call("a")] }, "Done."),
    tools: [look],
  });
  const result = await assistant.run("Hi").result;
  assertEquals(named(keys, result), ["a run:1:0", "a_2 run:1:1", "a_3 run:2:0"]);
});

Deno.test("a retry enters execute again, under the same key and with a fresh signal", async () => {
  const tries: string[] = [];
  const flaky = weather(({ city }, { idempotencyKey, signal }) => {
    tries.push(`${city} ${idempotencyKey.split(":")[2]} ${signal.aborted}`);
    if (city === "b" && tries.filter((line) => line.startsWith("b")).length < 3) throw new Error("flaky");
    return city;
  }, { idempotent: true });
  const retry: Middleware = {
    name: "retry",
    async execute(_, next) {
      for (let attempt = 1;; attempt++) {
        try {
          return await next(attempt === 1 ? { signal: AbortSignal.any([]) } : {});
        } catch (error) {
          if (attempt === 3) throw error;
        }
      }
    },
  };
  const { lines } = await runBatch(three, { tools: [flaky], use: [retry] });
  assertEquals(lines.slice(1), ["ok a", "ok b", "ok c", "assistant Done."]);
  assertEquals(tries, ["a 0 false", "b 1 false", "c 2 false", "b 1 false", "b 1 false"]);
});

for (const [when, fails] of [["has failed", true], ["has succeeded", false]] as const) {
  const once = "weather runs once; expected a tool with `idempotent: true`, or one that has begun a step";
  const tries = async (use: Middleware, options?: { idempotent: boolean }, withStep = false) => {
    let runs = 0;
    const flaky = weather(async (_, { step }) => {
      if (withStep) await step("reads", () => 1);
      if (++runs === 1 && fails) throw new Error("flaky");
      return `run ${runs}`;
    }, options);
    const { lines, errors } = await runBatch([call("a")], { tools: [flaky], use: [use] });
    return { runs, line: lines[1], errors: errors.map(String) };
  };
  const twice: Middleware = {
    name: "twice",
    async execute(_, next) {
      await next().catch(() => {});
      return await next();
    },
  };

  Deno.test(`next() runs a tool that ${when} again only if it is idempotent or has begun a step`, async () => {
    const refused = {
      runs: 1,
      line: "error weather failed.",
      errors: [`TypeError: Cannot call next() twice at execute in "twice": ${once}`],
    };
    assertEquals(await tries(twice), refused);
    assertEquals(await tries(twice, { idempotent: false }), refused);
    assertEquals(await tries(twice, { idempotent: true }), { runs: 2, line: "ok run 2", errors: [] });
    assertEquals(await tries(twice, undefined, true), { runs: 2, line: "ok run 2", errors: [] });
  });

  if (!fails) continue;
  Deno.test("tryAgain() runs a tool again only if it is idempotent or has begun a step", async () => {
    const recoverable: boolean[] = [];
    const again: Middleware = {
      name: "again",
      error: (ctx) => (recoverable.push(ctx.recoverable), Promise.resolve(tryAgain())),
    };
    const refused = { runs: 1, line: "error weather failed." };
    assertEquals(await tries(again), {
      ...refused,
      errors: [`TypeError: Cannot try again in "again": ${once}`, "Error: flaky"],
    });
    assertEquals(await tries(again, { idempotent: true }), { runs: 2, line: "ok run 2", errors: ["Error: flaky"] });
    assertEquals(await tries(again, undefined, true), { runs: 2, line: "ok run 2", errors: ["Error: flaky"] });
    assertEquals(recoverable, [false, true, true]);
  });
}

Deno.test("if a tool throws, next() rejects at execute, and returns a result at tool", async () => {
  let attempts = 0;
  const flaky = tool({
    name: "flaky",
    description: "Fails once",
    input: z.object({}),
    idempotent: true,
    execute: () => ++attempts === 1 ? Promise.reject(new Error("boom")) : "fine",
  });
  const seen: unknown[] = [];
  const use: Middleware = {
    async tool(_, next) {
      const result = await next();
      seen.push([result.status, textOf(result)]);
      return result;
    },
    execute: (_, next) =>
      next().catch((error) => {
        seen.push(String(error));
        return next();
      }),
  };
  await agent({ model: scripted({ calls: [["flaky", {}]] }, "Done."), tools: [flaky], use: [use] }).run("Hi").result;
  attempts = 0;
  const { execute: _, ...reviewer } = use;
  const options = { prompt: "Hi", onError: () => {} };
  await agent({ model: scripted({ calls: [["flaky", {}]] }, "Done."), tools: [flaky], use: [reviewer] }).run(options)
    .result;
  assertEquals(seen, ["Error: boom", ["ok", "fine"], ["error", "flaky failed."]]);
});

Deno.test("an execute hook can answer without running the tool", async () => {
  const log: string[] = [];
  const cache = at("b", { execute: () => Promise.resolve(text("cached")) });
  const { lines } = await runBatch(three, { tools: [weather(({ city }) => log.push(city))], use: [cache] });
  assertEquals(lines.slice(1), ["ok 1", "ok cached", "ok 2", "assistant Done."]);
  assertEquals(log, ["a", "c"]);
});

Deno.test("progress passes the event filter of its own attempt", async () => {
  const loud = weather((_, { progress }) => {
    progress("half");
    return "sun";
  });
  const mask: Middleware = {
    name: "mask",
    execute: (ctx, next) =>
      next({
        emit: (event) => ctx.emit(event.type === "tool.progress" ? { ...event, data: "masked" } : event),
      }),
  };
  const { events } = await runBatch([call("a")], { tools: [loud], use: [mask] });
  assertEquals(events.filter(({ type }) => type === "tool.progress"), [
    { type: "tool.progress", turn: 1, call: "a", data: "masked" },
  ]);
});

Deno.test("calls beyond the limit are answered as skipped, and still pass the hooks", async () => {
  const log: string[] = [];
  const { lines } = await runBatch(three, { use: [watch(log)], limits: { calls: 2 } });
  assertEquals(lines.slice(1), [
    "ok sun in a",
    "ok sun in b",
    "skipped Not run: this run may make 2 calls.",
    "assistant Done.",
  ]);
  assertEquals(log.slice(-2), ["out c skipped", "finally c"]);
});

Deno.test("no more calls run at once than the limit allows, in the model's order", async () => {
  const order: string[] = [];
  const inside = gauge();
  const slow = weather(({ city }) =>
    inside.during(async () => {
      order.push(city);
      await settled();
      if (city === "b") throw new Error("it gives its place back all the same");
      return city;
    })
  );
  const calls = ["a", "b", "c", "d", "e"].map((id) => call(id));
  const { lines } = await runBatch(calls, { tools: [slow], limits: { parallel: 2 } });
  assertEquals(inside.peak, 2);
  assertEquals(order, ["a", "b", "c", "d", "e"]);
  assertEquals(lines.slice(1), ["ok a", "error weather failed.", "ok c", "ok d", "ok e", "assistant Done."]);
});

Deno.test("a slot is held only during the work, not while a retry waits", async () => {
  const order: string[] = [];
  const flaky = weather(({ city }) => {
    order.push(city);
    if (order.length === 1) throw new Error("flaky");
    return city;
  }, { idempotent: true });
  const retry: Middleware = {
    name: "retry",
    async execute(_, next) {
      try {
        return await next();
      } catch {
        await settled();
        return await next();
      }
    },
  };
  await runBatch([call("a"), call("b")], { tools: [flaky], use: [retry], limits: { parallel: 1 } });
  assertEquals(order, ["a", "b", "a"]);
});

Deno.test("a subagent does not hold the slot that its own tools need", async () => {
  const child = asTool(
    agent({
      name: "child",
      model: scripted({ calls: [call("inner")] }, "Helped."),
      tools: [weather()],
    }),
    { name: "child", description: "Helps" },
  );
  const calls = [{ id: "a", name: "child", input: { prompt: "Help" } }, call("b")];
  const { lines } = await runBatch(calls, { tools: [child, weather()], limits: { parallel: 1 } });
  assertEquals(lines, ["call child weather", "ok Helped.", "ok sun in b", "assistant Done."]);
});

Deno.test("subagents share the slots of the run", async () => {
  const inside = gauge();
  const slow = (name: string) => weather(({ city }) => inside.during(async () => (await settled(), city)), { name });
  const child = (name: string) =>
    asTool(agent({ name, model: scripted({ calls: three }, "Helped."), tools: [slow("weather")] }), {
      name,
      description: "Helps",
    });
  const calls = ["one", "two"].map((name) => ({ id: name, name, input: { prompt: "Help" } }));
  await runBatch([...calls, call("c")], {
    tools: [child("one"), child("two"), slow("weather")],
    limits: { parallel: 2 },
  });
  assertEquals(inside.peak, 2);
});

Deno.test("a call that stops waiting for a slot leaves it to the next call", async () => {
  using time = new FakeTime();
  const slow = weather(({ city }) => new Promise((resolve) => setTimeout(() => resolve(city), 100)));
  const hurried = at("b", {
    execute: (ctx, next) => next({ signal: AbortSignal.any([ctx.signal, AbortSignal.timeout(50)]) }),
  });
  const running = batch(three, { tools: [slow], use: [hurried], limits: { parallel: 1 } }).run();
  for (let step = 0; step < 4; step++) await time.tickAsync(50);
  const { lines } = await running.outcome;
  assertEquals(lines.slice(1), ["ok a", "timeout weather did not finish in time.", "ok c", "assistant Done."]);
});

Deno.test("a call that waits for a slot is answered when the run is stopped", async () => {
  const log: string[] = [];
  const running = batch(three, {
    tools: [weather(({ city }, { signal }) => {
      log.push(city);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    })],
    limits: { parallel: 1 },
  }).run();
  await settled();
  running.stop();
  const { lines } = await running.outcome;
  assertEquals(log, ["a"]);
  assertEquals(lines.slice(1), Array(3).fill("aborted Stopped before it was done."));
});

Deno.test("a run stopped while its calls run answers every call, and reviews those that finished", async () => {
  using time = new FakeTime();
  const log: string[] = [];
  const running = batch(three, { tools: [ignoresSignal], use: [watch(log)], limits: { grace: 200 } }).run();
  await time.tickAsync();
  running.stop("leave");
  await time.tickAsync(199);
  assertEquals(log.filter((line) => line.startsWith("out")), []);
  await time.tickAsync(1);
  const { lines, result } = await running.outcome;
  assertEquals(lines.slice(1), ["ok sun in a", "aborted Stopped before it was done.", "ok sun in c"]);
  assertEquals(log.filter((line) => line.startsWith("out")), ["out a ok", "out b aborted", "out c ok"]);
  assertEquals([result.status, result.reason], ["aborted", "leave"]);
});

Deno.test("a tool that ignores its signal is abandoned and reported, and its late result is dropped", async () => {
  for (const settle of ["resolve", "reject"] as const) {
    using time = new FakeTime();
    const late = Promise.withResolvers<string>();
    let trace = (_: string) => {};
    const ignoresSignal = weather(({ city }, { progress }) => {
      if (city !== "b") return `sun in ${city}`;
      trace = progress;
      progress("begun");
      return late.promise;
    });
    const wait = at("a", {
      async tool(_, next) {
        const result = await next();
        trace("late");
        return result;
      },
    });
    const hurried = at("b", {
      execute: (ctx, next) => next({ signal: AbortSignal.any([ctx.signal, AbortSignal.timeout(50)]) }),
    });
    const running = batch(three, { tools: [ignoresSignal], use: [wait, hurried], limits: { grace: 200 } }).run();
    await time.tickAsync(50);
    await time.tickAsync(200);
    const { lines, events } = await running.outcome;
    late[settle]("late");
    await time.runMicrotasks();
    assertEquals(lines.slice(1), [
      "ok sun in a",
      "timeout weather did not finish in time.",
      "ok sun in c",
      "assistant Done.",
    ]);
    assertEquals(events.filter(({ type }) => type === "warning"), [{
      type: "warning",
      code: "tool.abandoned",
      message: "The tool weather did not stop when its signal aborted.",
      point: "execute",
    }]);
    assertEquals(events.flatMap((event) => event.type === "tool.progress" ? [event.data] : []), ["begun"]);
  }
});

Deno.test("a signal narrowed at tool reaches the work of that call only", async () => {
  using time = new FakeTime();
  const signals = new Map<string, AbortSignal>();
  const wait = weather(({ city }, { signal }) => {
    signals.set(city, signal);
    const { promise, resolve, reject } = Promise.withResolvers();
    const timer = setTimeout(() => resolve(`sun in ${city}`), 100);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
    return promise;
  });
  const hurried = at("b", {
    tool: (ctx, next) => next({ signal: AbortSignal.any([ctx.signal, AbortSignal.timeout(50)]) }),
  });
  const running = batch(three, { tools: [wait], use: [hurried] }).run();
  await time.tickAsync(50);
  await time.tickAsync(50);
  const { lines } = await running.outcome;
  assertEquals(lines.slice(1), [
    "ok sun in a",
    "timeout weather did not finish in time.",
    "ok sun in c",
    "assistant Done.",
  ]);
  assertEquals(signals.get("a"), signals.get("c"));
  assertNotEquals(signals.get("a"), signals.get("b"));
});

Deno.test("parallel calls share one listener on the run's signal, which is removed at the end", async () => {
  let added = 0;
  let removed = 0;
  const count: Middleware = {
    name: "count",
    session: (ctx, next) => {
      const { addEventListener, removeEventListener } = ctx.signal;
      Object.assign(ctx.signal, {
        addEventListener(...given: Parameters<typeof addEventListener>) {
          added++;
          addEventListener.apply(ctx.signal, given);
        },
        removeEventListener(...given: Parameters<typeof removeEventListener>) {
          removed++;
          removeEventListener.apply(ctx.signal, given);
        },
      });
      return next();
    },
  };
  const calls = Array.from({ length: 100 }, (_, index) => call(`call ${index}`));
  const slow = weather(async () => {
    await settled();
    return "sun";
  });
  const { lines } = await runBatch(calls, { tools: [slow], use: [count], limits: { parallel: 10 } });
  assertEquals(lines.filter((line) => line === "ok sun").length, 100);
  assertEquals([added, removed], [0, 0]);
});

Deno.test("listeners on a caller's signal are removed", async () => {
  const controller = new AbortController();
  const listeners: string[] = [];
  const { signal } = controller;
  const { addEventListener, removeEventListener } = signal;
  Object.assign(signal, {
    addEventListener(...given: Parameters<typeof addEventListener>) {
      listeners.push("added");
      addEventListener.apply(signal, given);
    },
    removeEventListener(...given: Parameters<typeof removeEventListener>) {
      listeners.push("removed");
      removeEventListener.apply(signal, given);
    },
  });
  const assistant = agent({ model: scripted({ calls: three }, "Done."), tools: [weather()] });
  await assistant.run({ prompt: "Hi", signal }).result;
  assertEquals(listeners, ["added", "removed"]);
});

Deno.test("a hook that hangs before next() is abandoned when the run is stopped, and its siblings unwind", async () => {
  using time = new FakeTime();
  const log: string[] = [];
  const running = batch(three, {
    use: [watch(log), at("b", { tool: () => new Promise<ToolResult>(() => {}) })],
    limits: { grace: 100 },
  }).run();
  await time.tickAsync();
  running.stop();
  await time.tickAsync(300);
  const { lines, result, events } = await running.outcome;
  await time.runMicrotasks();
  assertEquals(result.status, "aborted");
  assertEquals(lines.slice(1), Array(3).fill("aborted Stopped before it was done."));
  assertEquals(log, ["in a", "in b", "finally a"]);
  const warnings = events.flatMap((event) => event.type === "warning" ? [event.code] : []);
  assertEquals(warnings, ["hook.abandoned"]);
  const reported = events.flatMap((event) => event.type === "tool.finished" ? [event.call] : []);
  assertEquals(reported, ["a", "b", "c"]);
});

Deno.test("results of calls that left before a hook hung are kept", async () => {
  using time = new FakeTime();
  const running = batch(three, {
    use: [at("b", {
      async tool(_, next) {
        await next();
        return await new Promise<ToolResult>(() => {});
      },
    })],
    limits: { grace: 100 },
  }).run();
  await time.tickAsync();
  running.stop();
  await time.tickAsync(300);
  const { lines } = await running.outcome;
  assertEquals(lines.slice(1), [
    "ok sun in a",
    "aborted Stopped before it was done.",
    "aborted Stopped before it was done.",
  ]);
});

Deno.test("the cleanup receives the interrupted calls", async () => {
  const open: string[][] = [];
  const running = batch(three, {
    tools: [
      weather(({ city }, { signal }) =>
        city === "b"
          ? new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
          : `sun in ${city}`
      ),
    ],
    use: [{
      name: "cleanup",
      async abort(ctx, next) {
        open.push(ctx.open.map(({ id }) => id));
        await next();
      },
    }],
  }).run();
  await settled();
  running.stop();
  await running.outcome;
  assertEquals(open, [["b"]]);
});

Deno.test("a subagent that is stopped with its parent is an aborted call", async () => {
  const child = asTool(
    agent({
      name: "child",
      model: scripted({
        before: (_, signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
      }),
    }),
    { name: "child", description: "Helps" },
  );
  const running = batch([{ id: "a", name: "child", input: { prompt: "Help" } }], { tools: [child] }).run();
  await settled();
  running.stop();
  const { lines, events } = await running.outcome;
  assertEquals(lines, ["call child", "aborted Stopped before it was done."]);
  assertEquals(events.filter(({ type }) => type === "warning"), []);
});

Deno.test("the parent waits for a subagent with a tool that ignores its signal", async () => {
  using time = new FakeTime();
  const child = asTool(
    agent({ name: "child", model: scripted({ calls: [call("b")] }), tools: [ignoresSignal], limits: { grace: 100 } }),
    { name: "child", description: "Helps" },
  );
  const running = batch([{ id: "a", name: "child", input: { prompt: "Help" } }], {
    tools: [child],
    limits: { grace: 100 },
  }).run();
  await time.tickAsync();
  running.stop();
  await time.tickAsync(100);
  const { lines, events } = await running.outcome;
  assertEquals(lines, ["call child", "aborted Stopped before it was done."]);
  assertEquals(events.filter(({ type }) => type === "warning"), []);
});

Deno.test("an error hook decides about a failed tool: retry, retry later, or not", async () => {
  using time = new FakeTime();
  const seen: string[] = [];
  const decide: Middleware = {
    name: "decide",
    error(ctx) {
      seen.push(`${ctx.source} ${ctx.name} ${ctx.attempt} ${ctx.recoverable} ${ctx.error}`);
      return Promise.resolve(ctx.attempt < 3 ? tryAgain({ after: 100 }) : skip());
    },
  };
  let tries = 0;
  const flaky = weather(({ city }) => {
    if (city === "b" && ++tries < 3 || city === "c") throw new Error(`flaky ${city}`);
    return `sun in ${city}`;
  }, { idempotent: true });
  const running = batch(three, { tools: [flaky], use: [decide] }).run();
  await time.tickAsync(100);
  await time.tickAsync(100);
  const { lines } = await running.outcome;
  assertEquals(lines.slice(1), ["ok sun in a", "ok sun in b", "error weather failed.", "assistant Done."]);
  assertEquals(seen, [
    "execute weather 1 true Error: flaky b",
    "execute weather 1 true Error: flaky c",
    "execute weather 2 true Error: flaky b",
    "execute weather 2 true Error: flaky c",
    "execute weather 3 true Error: flaky c",
  ]);
});

Deno.test("a tool failure that ends the run reaches the error hooks once, and its siblings finish", async () => {
  const decidedOn: string[] = [];
  const severe: Middleware = {
    name: "severe",
    error({ error }) {
      decidedOn.push(String(error));
      return Promise.resolve(abortRun());
    },
  };
  const broken = weather(({ city }) => {
    if (city !== "c") throw new Error(city);
    return "sun in c";
  });
  const { lines, result, errors } = await runBatch(three, { tools: [broken], use: [severe] });
  assertEquals(decidedOn, ["Error: a", "Error: b"]);
  assertEquals(lines.slice(1), ["error weather failed.", "error weather failed.", "ok sun in c"]);
  assertEquals([result.status, String(result.error)], ["failed", "Error: a"]);
  assertEquals(errors.map(String).sort(), ["Error: a", "Error: b"]);
});

Deno.test("a failure is not retried after its signal has aborted", async () => {
  using time = new FakeTime();
  let tries = 0;
  const running = batch([call("a")], {
    tools: [weather(() => {
      tries++;
      throw new Error("flaky");
    }, { idempotent: true })],
    use: [
      { name: "stubborn", error: () => Promise.resolve(tryAgain({ after: 30 })) },
      {
        name: "hurried",
        tool: (ctx, next) => next({ signal: AbortSignal.any([ctx.signal, AbortSignal.timeout(50)]) }),
      },
    ],
  }).run();
  for (let step = 0; step < 5; step++) await time.tickAsync(20);
  const { lines } = await running.outcome;
  assertEquals(lines, ["call weather", "timeout weather did not finish in time.", "assistant Done."]);
  assertEquals(tries, 2);
});

Deno.test("a tool that is tried again at once blocks neither the process nor the time limit of its run", async () => {
  const use: Middleware[] = [{
    name: "stubborn",
    error: ({ attempt }) => Promise.resolve(attempt < 100_000 ? tryAgain() : skip()),
  }];
  const broken = weather(() => {
    throw new Error("broken");
  }, { idempotent: true });
  const { lines, result } = await runBatch([call("a")], { tools: [broken], use, limits: { time: 20 } });
  assertEquals([result.status, result.reason], ["limit", "deadline"]);
  assertEquals(lines, ["call weather", "aborted Stopped before it was done."]);
});

Deno.test("a run stopped while a retry waits answers the call", async () => {
  const running = batch([call("a")], {
    tools: [weather(() => {
      throw new Error("flaky");
    }, { idempotent: true })],
    use: [{ name: "patient", error: () => Promise.resolve(tryAgain({ after: 60_000 })) }],
  }).run();
  await settled();
  running.stop();
  const { lines, result } = await running.outcome;
  assertEquals([result.status, lines], ["aborted", ["call weather", "aborted Stopped before it was done."]]);
});

Deno.test("a subagent that is refused or fails is a failed call", async () => {
  const child = (name: string, step: ScriptedAnswer) =>
    asTool(agent({ name, model: scripted(step) }), { name, description: "Helps" });
  const refuse: Middleware = {
    name: "refuse",
    subagent: async (ctx, next) => ctx.child === "forbidden" ? refused("not that one") : await next(),
  };
  const calls = ["forbidden", "broken", "fine"].map((name) => ({ id: name, name, input: { prompt: "Help" } }));
  const { lines } = await runBatch(calls, {
    tools: [
      child("forbidden", "never"),
      child("broken", { error: new Error("secret") }),
      child("fine", "Helped."),
    ],
    use: [refuse],
  });
  assertEquals(lines.slice(1), [
    "error forbidden did not finish: not that one",
    "error broken did not finish: failure",
    "ok Helped.",
    "assistant Done.",
  ]);
});
