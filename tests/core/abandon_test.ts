import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { agent, type Emit, type Event, type Limits, memory, type Middleware, text, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { cancellationOf, delay, startTimer, withGracePeriod } from "../../src/core/lib/cancellation.ts";
import { Semaphore } from "../../src/core/lib/semaphore.ts";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";

/** A signal that is told when to abort, and how many listen to it. */
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

Deno.test("abandon() comes to what the work does, and listens no longer", async () => {
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

Deno.test("abandon() waits for work that stops in time, and leaves work that does not", async () => {
  using time = new FakeTime();
  const left: string[] = [];
  for (const already of [false, true]) {
    const { signal, abort } = counted();
    if (already) abort(new Error("stop"));
    const soon = Promise.withResolvers<string>();
    const inTime = withGracePeriod(soon.promise, cancellationOf(signal), 10, () => left.push("soon"));
    const late = Promise.withResolvers<string>();
    const tooLate = withGracePeriod(late.promise, cancellationOf(signal), 10, () => left.push("late"));
    tooLate.catch(() => {}); // looked at below
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

Deno.test("delay() takes so long, or ends with its signal", async () => {
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

Deno.test("later() is never where a timer cannot hold it", () => {
  using time = new FakeTime();
  let ran = 0;
  clearTimeout(startTimer(() => ran++, 5));
  startTimer(() => ran++, 10);
  startTimer(() => ran++, 2 ** 31);
  startTimer(() => ran++, Infinity);
  time.runAll();
  assertEquals([ran, time.now - time.start], [1, 10]);
});

Deno.test("slots are given in the order they were asked for, and not to who has left", async () => {
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

/** Waits for what never comes, whatever the signal says, and tells when it is there. */
function deafness() {
  const here = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();
  const wait = async () => {
    here.resolve();
    await late.promise;
  };
  return { here: here.promise, wait, wake: () => late.resolve() };
}

Deno.test("a hook that ignores the end of its run is left behind, wherever it waits", async () => {
  for (const point of ["session", "prompt", "turn", "model", "tool", "stop"] as const) {
    for (const when of ["before", "after"] as const) {
      const heard: string[] = [];
      using time = new FakeTime();
      const { here, wait, wake } = deafness();
      const deaf = async (ctx: { readonly emit: Emit }, next: () => Promise<never>) => {
        if (when === "before") await wait();
        const answer = when === "after" ? await next() : undefined;
        if (when === "after") await wait();
        ctx.emit({ type: "notice", text: "late" });
        return answer ?? await next();
      };
      const model = scripted({ text: "I look.", calls: [["look", {}]] }, "Done.");
      const use = [{ name: "deaf", [point]: deaf } as Middleware]; // such a hook fits all of them
      const observe = ({ type }: Event) => heard.push(type);
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
      const last = heard.length;
      wake();
      await time.runMicrotasks();
      assertEquals([heard.length, ...lines((await run.result).messages)], [last, ...before]);
      assertEquals(time.next(), false, "no timer is left");
    }
  }
});

Deno.test("what goes on beneath a hook that was left behind sets no timer once the run is over", async () => {
  using time = new FakeTime();
  const { here, wait, wake } = deafness();
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
  await over.promise; // before the event loop turns: a timer of its own clock would be left here
  assertEquals(time.next(), false);
});

Deno.test("what a hook that was left behind comes to while the run is cleaned up is not kept twice", async () => {
  using time = new FakeTime();
  const { here, wait, wake } = deafness();
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

Deno.test("a cleanup that ignores its signal is left behind", async () => {
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

Deno.test("the cleanup runs once, and knows the calls that were open", async () => {
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

Deno.test("the cleanup runs once, also where a hook fails while the run unwinds", async () => {
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

Deno.test("the cleanup is not for what ends, pauses or reaches a limit by itself", async () => {
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
      await play({ stop: (ctx) => Promise.reject(ctx.run.end("enough")) }),
      await play({ stop: (ctx) => Promise.reject(ctx.run.pause("Sure?")) }),
      await play({ prompt: () => Promise.resolve({ status: "cancelled", text: "" }) }),
    ],
    ["done", "limit", "done", "paused", "cancelled"],
  );
  assertEquals(cleaned, 0);
  assertEquals(await play({ stop: (ctx) => Promise.reject(ctx.run.end("no", { as: "failed" })) }), "failed");
  assertEquals(await play({ stop: (ctx) => Promise.reject(ctx.run.end("no", { as: "cancelled" })) }), "cancelled");
  assertEquals(cleaned, 2);
});

Deno.test("instructions that ignore the end of their run are left behind", async () => {
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
  const saving = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const kept = memory();
  const store = durable({
    ...kept,
    async save(session) {
      const position = session.run?.position;
      if (position?.at === "tools" && position.calls.every(({ state }) => state === "ran")) {
        saving.resolve();
        await release.promise;
      }
      return await kept.save(session);
    },
  });
  const model = scripted({ text: "I look.", calls: [["look", {}]] }, "Done.");
  const run = agent({ model, tools: [look], limits }).run({ prompt: "Hi", session: "s", store });
  await saving.promise;
  run.stop();
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
