import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { agent, type Emit, type Event, type Limits, memory, type Middleware, text, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { cancellationOf, delay, startTimer, withGracePeriod } from "../../src/core/lib/cancellation.ts";
import { Semaphore } from "../../src/core/lib/locks.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { recordingStore } from "../support/recording_store.ts";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";
import { saving } from "../support/saving.ts";

/** A signal with a counter of its listeners. */
function counted() {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  return { signal, abort: (reason: unknown) => controller.abort(reason), listeners: () => listeners };
}

Deno.test("withGracePeriod() returns the result of the work, and removes its listeners", async () => {
  const { signal, listeners } = counted();
  const never = () => {
    throw new Error("never");
  };
  assertEquals(await withGracePeriod(Promise.resolve(1), cancellationOf(signal), 10, never), 1);
  const failed = withGracePeriod(Promise.reject(new Error("failed")), cancellationOf(signal), 10, never);
  assertEquals(listeners(), 1);
  await assertRejects(() => failed, Error, "failed");
  assertEquals(listeners(), 0);
});

Deno.test("withGracePeriod() waits for work that stops in time, and abandons work that does not", async () => {
  using time = new FakeTime();
  const left: string[] = [];
  for (const already of [false, true]) {
    const { signal, abort } = counted();
    if (already) abort(new Error("stop"));
    const soon = Promise.withResolvers<string>();
    const inTime = withGracePeriod(soon.promise, cancellationOf(signal), 10, () => left.push("soon"));
    const late = Promise.withResolvers<string>();
    const tooLate = withGracePeriod(late.promise, cancellationOf(signal), 10, () => left.push("late"));
    tooLate.catch(() => {}); // asserted below
    if (!already) abort(new Error("stop"));
    await time.tickAsync(9);
    soon.resolve("soon");
    await time.tickAsync(1);
    late.resolve("late");
    assertEquals(await inTime, "soon");
    await assertRejects(() => tooLate, Error, "stop");
  }
  assertEquals(left, ["late", "late"]);
});

Deno.test("delay() takes the given time, or rejects when its signal aborts", async () => {
  using time = new FakeTime();
  const { signal, abort, listeners } = counted();
  let done = false;
  const waited = delay(10, signal).then(() => done = true);
  await time.tickAsync(9);
  await time.runMicrotasks();
  assertEquals(done, false);
  await time.tickAsync(1);
  assertEquals([await waited, listeners()], [true, 0]);
  const cut = delay(10, signal);
  const reason = new Error("stop");
  abort(reason);
  assertStrictEquals(await cut.catch((error) => error), reason);
  assertStrictEquals(await delay(10, signal).catch((error) => error), reason);
  assertEquals(time.next(), false);
});

Deno.test("startTimer() never fires for a delay that a timer cannot hold", () => {
  using time = new FakeTime();
  let ran = 0;
  clearTimeout(startTimer(() => ran++, 5));
  startTimer(() => ran++, 10);
  startTimer(() => ran++, 2 ** 31);
  startTimer(() => ran++, Infinity);
  time.runAll();
  assertEquals([ran, time.now - time.start], [1, 10]);
});

Deno.test("Semaphore grants slots in the order of the requests, and skips requests that were cancelled", async () => {
  const slots = new Semaphore(1);
  const order: string[] = [];
  const { signal, abort, listeners } = counted();
  assertEquals(slots.take(cancellationOf(signal)), undefined);
  const second = slots.take(cancellationOf(signal))?.then(() => order.push("second"));
  const leaving = counted();
  const third = slots.take(cancellationOf(leaving.signal))?.catch((error) => order.push(error.message));
  const fourth = slots.take(cancellationOf(signal))?.then(() => order.push("fourth"));
  leaving.abort(new Error("left"));
  await third;
  slots.give();
  await second;
  slots.give();
  await fourth;
  assertEquals([order, listeners(), leaving.listeners()], [["left", "second", "fourth"], 0, 1]);
  slots.give();
  assertEquals(slots.take(cancellationOf(signal)), undefined);
  abort(new Error("stop"));
  await assertRejects(async () => await slots.take(cancellationOf(signal)), Error, "stop");
});

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });
const limits: Partial<Limits> = { grace: 100 };

/** Waits for a promise and ignores every signal. `here` resolves once it waits. */
function ignoredSignal() {
  const here = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();
  const wait = async () => {
    here.resolve();
    await late.promise;
  };
  return { here: here.promise, wait, wake: () => late.resolve() };
}

Deno.test("a hook that ignores the end of its run is abandoned, at every point", async () => {
  for (const point of ["session", "prompt", "turn", "model", "tool", "stop"] as const) {
    for (const when of ["before", "after"] as const) {
      const received: string[] = [];
      using time = new FakeTime();
      const { here, wait, wake } = ignoredSignal();
      const ignoresSignal = async (ctx: { readonly emit: Emit }, next: () => Promise<never>) => {
        if (when === "before") await wait();
        const answer = when === "after" ? await next() : undefined;
        if (when === "after") await wait();
        ctx.emit({ type: "notice", text: "late" });
        return answer ?? await next();
      };
      const model = scripted({ text: "I look.", calls: [["look", {}]] }, "Done.");
      const use = [{ name: "deaf", [point]: ignoresSignal } as Middleware]; // this hook fits all of these points
      const observe = ({ type }: Event) => received.push(type);
      const run = agent({ model, tools: [look], use, limits, observe }).run("Hi");
      await here;
      run.stop();
      await time.tickAsync(299);
      await time.tickAsync(1);
      const { status, messages } = await run.result;
      const events = eventLines(await eventsOfRun(run));
      const left = events.findIndex((line) => line.startsWith("warning"));
      assertEquals([status, ...events.slice(left, -1)], [
        "aborted",
        "warning hook.abandoned A hook did not stop when its signal aborted.",
        ...point === "tool" ? ["tool.finished 1 call_1"] : [],
        "session.closed",
      ], `${point}, ${when}`);
      const before = lines(messages);
      const last = received.length;
      wake();
      await time.runMicrotasks();
      assertEquals([received.length, ...lines((await run.result).messages)], [last, ...before]);
      assertEquals(time.next(), false, "no timer is left");
    }
  }
});

Deno.test("the calls of an abandoned hook are saved before their results are shown", async () => {
  using time = new FakeTime();
  const { store, saved } = recordingStore();
  const { here, wait } = ignoredSignal();
  const progress: unknown[] = [];
  const observe = ({ type }: Event) => type === "tool.finished" && progress.push(saved.at(-1)?.run?.position.at);
  const model = scripted({ calls: [["look", {}], ["look", {}]] });
  const use = [{ tool: async () => (await wait(), text("late")) }];
  const run = agent({ model, tools: [look], use, limits, observe }).run({ prompt: "Hi", session: "s", store });
  await here;
  run.stop();
  const { status } = await advanceUntilSettled(time, run.result);
  assertEquals([status, progress], ["aborted", ["tools", "tools"]]);
});

Deno.test("the calls of a run that is stopped while it pauses are saved before their results are shown", async () => {
  const { store, saved } = recordingStore();
  const progress: unknown[] = [];
  const observe = ({ type }: Event) => type === "tool.finished" && progress.push(saved.at(-1)?.run?.position.at);
  const model = scripted({ calls: [["look", {}], ["look", {}]] });
  const use: Middleware[] = [{
    tool: (ctx) => {
      run.stop();
      return Promise.reject(ctx.run.pause("Sure?"));
    },
  }];
  const assistant = agent({ model, tools: [look], use, observe });
  const run: ReturnType<typeof assistant.run> = assistant.run({ prompt: "Hi", session: "s", store });
  assertEquals([(await run.result).status, progress], ["aborted", ["tools", "tools"]]);
});

Deno.test("a store that hangs does not hold up the cleanup after an abandoned hook", async () => {
  using time = new FakeTime();
  const kept = memory();
  const { here, wait } = ignoredSignal();
  let hangs = false;
  const store = durable(saving(kept, (_, save) => hangs ? new Promise(() => {}) : save()));
  const cleaned = Promise.withResolvers<void>();
  const abort: Middleware["abort"] = (_, next) => {
    cleaned.resolve();
    return next();
  };
  const use = [{ tool: async () => (await wait(), text("late")), abort }];
  const model = scripted({ calls: [["look", {}]] });
  const run = agent({ model, tools: [look], use, limits }).run({ prompt: "Hi", session: "s", store });
  await here;
  hangs = true;
  run.stop();
  for (let tenth = 0; tenth < 10; tenth++) await time.tickAsync(100);
  await cleaned.promise;
});

Deno.test("results of abandoned calls are shown once the save before them is done, however late, and saved only then", async () => {
  using time = new FakeTime();
  const kept = memory();
  const { here, wait } = ignoredSignal();
  const release = Promise.withResolvers<void>();
  const order: string[] = [];
  let hangs = false;
  const store = durable(saving(kept, async (session, save) => {
    if (hangs) await release.promise;
    const { position } = session.run ?? {};
    order.push(`saved ${position?.at} ${position?.at === "tools" ? position.calls.map(({ state }) => state) : ""}`);
    return await save();
  }));
  const observe = ({ type }: Event) => void order.push(type);
  const abort: Middleware["abort"] = (_, next) => (order.push("cleanup"), next());
  const use = [{ tool: async () => (await wait(), text("late")), abort }];
  const model = scripted({ text: "I look.", calls: [["look", {}], ["look", {}]] });
  const run = agent({ model, tools: [look], use, limits, observe }).run({ prompt: "Hi", session: "s", store });
  await here;
  hangs = true;
  run.stop();
  for (let tenth = 0; tenth < 10; tenth++) await time.tickAsync(100);
  const stopped = order.findIndex((line) => line === "cleanup");
  assertEquals(order.slice(stopped), ["cleanup"]);
  release.resolve();
  const { status } = await advanceUntilSettled(time, run.result);
  assertEquals([status, ...order.slice(stopped)], [
    "aborted",
    "cleanup",
    "saved tools pending,pending", // the one that hung
    "saved tools pending,pending",
    "tool.finished",
    "tool.started",
    "tool.finished",
    "session.closed",
    "saved undefined ",
    "run.aborted",
  ]);
  assertEquals(lines((await store.load("s"))?.messages ?? []), [
    "user Hi",
    "assistant I look.",
    "call look look",
    "aborted Stopped before it was done.",
    "aborted Stopped before it was done.",
  ]);
});

Deno.test("hooks inside an abandoned hook set no timer once the run is over", async () => {
  using time = new FakeTime();
  const { here, wait, wake } = ignoredSignal();
  const over = Promise.withResolvers<void>();
  const use: Middleware[] = [
    { turn: (_, next) => next().finally(over.resolve) },
    { tool: async (_, next) => (await wait(), await next()) },
  ];
  const run = agent({ model: scripted({ calls: [["look", {}]] }), tools: [look], use, limits }).run("Hi");
  await here;
  run.stop();
  await time.tickAsync(300);
  await run.result;
  wake();
  await over.promise; // before the event loop turns: the sanitizer would find a timer here
  assertEquals(time.next(), false);
});

Deno.test("the result of an abandoned hook that arrives during the cleanup is not stored twice", async () => {
  using time = new FakeTime();
  const { here, wait, wake } = ignoredSignal();
  const slow: Middleware = {
    tool: async (_, next) => {
      const result = await next();
      await wait();
      return result;
    },
    abort: async (ctx, next) => {
      wake();
      await delay(50, ctx.signal);
      await next();
    },
  };
  const model = scripted({ text: "I look.", calls: [["look", {}], ["look", {}]] });
  const run = agent({ model, tools: [look], use: [slow], limits }).run("Hi");
  await here;
  run.stop();
  await time.tickAsync(300);
  await time.tickAsync(50);
  const { status, messages } = await run.result;
  assertEquals([status, ...lines(messages)], [
    "aborted",
    "user Hi",
    "assistant I look.",
    "call look look",
    "aborted Stopped before it was done.",
    "aborted Stopped before it was done.",
  ]);
});

Deno.test("a cleanup that ignores its signal is abandoned", async () => {
  using time = new FakeTime();
  const aborted: boolean[] = [];
  const use: Middleware[] = [{
    abort: async (ctx, next) => {
      ctx.emit({ type: "notice", text: "cleaning" });
      ctx.signal.addEventListener("abort", () => aborted.push(true));
      await next();
      await new Promise(() => {});
    },
  }];
  const model = scripted({ text: "Hel", before: () => Promise.reject(new Error("cut")) });
  const run = agent({ model, use, limits }).run("Hi");
  await time.tickAsync(100);
  await time.tickAsync(0);
  assertEquals(eventLines(await eventsOfRun(run)).slice(5), [
    "notice cleaning",
    "warning hook.abandoned A cleanup did not stop when its signal aborted. abort",
    "session.closed",
    "run.failed uuid The run failed. internal",
  ]);
  assertEquals(aborted, [true]);
});

Deno.test("the cleanup runs once, and receives the open calls", async () => {
  const seen: unknown[] = [];
  const watch: Middleware = {
    abort: async (ctx, next) => {
      const { reason, message, open, usage } = ctx;
      seen.push({ reason, message, open: open.map(({ id }) => id), usage });
      await next();
    },
    tool: async (ctx, next) => {
      const result = await next();
      return ctx.index === 0 ? { ...text("Reviewed."), status: result.status } : result;
    },
  };
  const wait = tool({
    name: "wait",
    description: "Waits",
    input: z.object({}),
    execute: (_, { signal }) =>
      new Promise<string>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        run.stop("client-gone");
      }),
  });
  const model = scripted({ calls: [["look", {}], ["wait", {}]] });
  const run: ReturnType<ReturnType<typeof agent>["run"]> = agent({ model, tools: [look, wait], use: [watch] }).run(
    "Hi",
  );
  const { status, reason, messages } = await run.result;
  assertEquals([status, reason, ...lines(messages).slice(2)], [
    "aborted",
    "client-gone",
    "ok Reviewed.",
    "aborted Stopped before it was done.",
  ]);
  assertEquals(seen, [
    { reason: "client-gone", message: undefined, open: ["call_2"], usage: { input: 1, output: 1 } },
  ]);
});

Deno.test("the cleanup runs once, also if a hook fails while the run unwinds", async () => {
  const reasons: string[] = [];
  const use: Middleware[] = [{
    session: async (_, next) => {
      await next();
      throw new Error("second");
    },
    prompt: () => {
      run.stop();
      throw new Error("first");
    },
    abort: async (ctx, next) => {
      reasons.push(ctx.reason);
      await next();
    },
  }];
  const run: ReturnType<ReturnType<typeof agent>["run"]> = agent({ model: scripted(), use }).run("Hi");
  assertEquals([(await run.result).status, reasons], ["aborted", ["stop"]]);
});

Deno.test("a run that ends, pauses or reaches a limit has no cleanup", async () => {
  let cleaned = 0;
  const watch: Middleware = {
    abort: async (_, next) => {
      cleaned++;
      await next();
    },
  };
  const play = async (middleware: Middleware, limits: Partial<Limits> = {}) => {
    const model = scripted("Hello!");
    return (await agent({ model, use: [watch, middleware], limits }).run("Hi").result).status;
  };
  assertEquals(
    [
      await play({}),
      await play({}, { turns: 0 }),
      await play({ stop: (ctx) => Promise.reject(ctx.run.end("enough", { as: "done" })) }),
      await play({ stop: (ctx) => Promise.reject(ctx.run.end("enough", { as: "limit" })) }),
      await play({ stop: (ctx) => Promise.reject(ctx.run.pause("Sure?")) }),
      await play({ prompt: () => Promise.resolve({ status: "cancelled", text: "" }) }),
    ],
    ["done", "limit", "done", "limit", "paused", "cancelled"],
  );
  assertEquals(cleaned, 0);
  assertEquals(await play({ stop: (ctx) => Promise.reject(ctx.run.end("no", { as: "failed" })) }), "failed");
  assertEquals(await play({ stop: (ctx) => Promise.reject(ctx.run.end("no")) }), "cancelled");
  assertEquals(cleaned, 2);
});

Deno.test("an instructions function that ignores the end of its run is abandoned", async () => {
  using time = new FakeTime();
  const assistant = agent({ model: scripted(), instructions: () => new Promise<string>(() => {}), limits });
  const run = assistant.run("Hi");
  await time.runMicrotasks();
  run.stop();
  await time.tickAsync(300);
  const { status, reason } = await run.result;
  assertEquals([status, reason], ["aborted", "stop"]);
});

Deno.test("calls whose save hangs until the run is over are in the transcript once", async () => {
  using time = new FakeTime();
  const isSaving = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const kept = memory();
  const store = durable(saving(kept, async (session, save) => {
    const position = session.run?.position;
    if (position?.at === "tools" && position.calls.every(({ state }) => state === "ran")) {
      isSaving.resolve();
      await release.promise;
    }
    return await save();
  }));
  const model = scripted({ text: "I look.", calls: [["look", {}]] }, "Done.");
  const stopping = tool({
    name: "look",
    description: "Looks",
    input: z.object({}),
    execute: () => {
      run.stop();
      return "sun";
    },
  });
  const run = agent({ model, tools: [stopping], limits }).run({ prompt: "Hi", session: "s", store });
  await isSaving.promise;
  await time.tickAsync(3 * 100);
  release.resolve();
  const { status, messages } = await run.result;
  assertEquals([status, ...lines(messages)], [
    "aborted",
    "user Hi",
    "assistant I look.",
    "call look",
    "aborted Stopped before it was done.",
  ]);
  await time.runMicrotasks();
  assertEquals(lines((await store.load("s"))?.messages ?? []), lines(messages));
  const events = eventLines(await eventsOfRun(run));
  assertEquals(events.filter((line) => line.startsWith("tool.finished")).length, 1);
  assertEquals(events.slice(-2), ["session.closed", "run.aborted stop I look."]);
});
