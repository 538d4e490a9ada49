import {
  agent,
  type ContentPart,
  continueWith,
  defaultLimits,
  deploy,
  type Limits,
  type Middleware,
  text,
  textOf,
  tool,
  workers,
} from "@jizai/jizai";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { gauge, settled } from "../support/batch.ts";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";

const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });

function looking(calls: number): ScriptedStep {
  return { text: "I look.", calls: Array.from({ length: calls }, () => ["look", {}] as const) };
}

Deno.test("agent() rejects limits that are not numbers of 0 or more, or that do not exist", () => {
  const model = scripted();
  const make = (limits: Partial<Limits>) => () => agent({ model, limits });
  assertThrows(make({ turns: -1 }), RangeError, 'Cannot set limit "turns" to -1: expected a number of 0 or more');
  assertThrows(make({ calls: NaN }), RangeError, 'Cannot set limit "calls" to NaN');
  assertThrows(make({ parallel: 0 }), RangeError, 'Cannot set limit "parallel" to 0: expected a number of 1 or more');
  const unknown = { turns: 1, steps: 3 };
  assertThrows(make(unknown), TypeError, 'Cannot set limit "steps": expected one of turns, calls, continuations');
  make({ turns: 0, calls: Infinity, ...workers, ...deploy })();
});

Deno.test("a run merges the limits of the agent, its own, and those of a hook", async () => {
  const seen: Limits[] = [];
  const note: Middleware = {
    session: (ctx, next) => {
      seen.push(ctx.run.limits);
      return next({ settings: { limits: { ...ctx.settings.limits, calls: 3 } } });
    },
    stop: (ctx, next) => {
      seen.push(ctx.run.limits);
      return next();
    },
  };
  await agent({ model: scripted("Hello!"), use: [note], limits: { turns: 1, calls: 1 } })
    .run({ prompt: "Hi", limits: { calls: 2, depth: 1 } }).result;
  const run = { ...defaultLimits, turns: 1, calls: 2, depth: 1 };
  assertEquals(seen, [run, { ...run, calls: 3 }]);
});

Deno.test("time: the clock does not restart when a hook changes the limits", async () => {
  using time = new FakeTime();
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const slow: Middleware = {
    async session(ctx, next) {
      await wait(60);
      return await next({ settings: { limits: { ...ctx.settings.limits, calls: 3 } } });
    },
    async turn(_, next) {
      await wait(60);
      return await next();
    },
  };
  const { result } = agent({ model: scripted("Hello!"), use: [slow], limits: { time: 100 } }).run("Hi");
  await time.tickAsync(120);
  const { status, reason } = await result;
  assertEquals([status, reason], ["limit", "deadline"]);
});

Deno.test("turns: a run ends after this many responses, with the last text", async () => {
  const play = async (turns: number) => {
    const model = scripted(looking(1), looking(1), "Done.");
    const run = agent({ model, tools: [look], limits: { turns } }).run("Hi");
    const last = eventLines(await eventsOfRun(run)).slice(-3);
    const { status, reason, text, messages } = await run.result;
    return { ended: [status, reason, text], requests: model.requests.length, messages: lines(messages), last };
  };
  const turn = ["assistant I look.", "call look", "ok Seen"];
  assertEquals(await play(2), {
    ended: ["limit", "turns", "I look."],
    requests: 2,
    messages: ["user Hi", ...turn, ...turn],
    last: ["turn.finished 2", "session.closed", "run.finished limit I look. turns calls"],
  });
  assertEquals(await play(0), {
    ended: ["limit", "turns", ""],
    requests: 0,
    messages: ["user Hi"],
    last: ["prompt.accepted", "session.closed", "run.finished limit  turns"],
  });
  assertEquals((await play(3)).ended, ["done", undefined, "Done."]);
});

Deno.test("calls: further calls are answered as skipped, and the model continues", async () => {
  const used: unknown[] = [];
  const note: Middleware = {
    turn: (ctx, next) => {
      used.push(ctx.run.used.calls);
      return next();
    },
  };
  const model = scripted(looking(2), looking(2), "Done.");
  const run = agent({ model, tools: [look], use: [note], limits: { calls: 3 } }).run("Hi");
  const { status, messages } = await run.result;
  assertEquals(
    [status, ...lines(messages).slice(3)],
    [
      "done",
      "ok Seen",
      "ok Seen",
      "assistant I look.",
      "call look look",
      "ok Seen",
      "skipped Not run: this run may make 3 calls.",
      "assistant Done.",
    ].slice(0),
  );
  assertEquals(used, [0, 2, 4]);
});

Deno.test("continuations: a stop hook that always continues reaches the limit, and sees the count", async () => {
  const seen: unknown[] = [];
  const forever: Middleware = {
    stop: (ctx) => {
      seen.push([ctx.continuations, ctx.limit, ctx.run.used.continuations]);
      return Promise.resolve(continueWith("Go on."));
    },
  };
  const model = scripted("1", "2", looking(1), "3", "4", "5");
  const run = agent({ model, tools: [look], use: [forever], limits: { continuations: 2 } }).run("Hi");
  const { status, reason, text, messages } = await run.result;
  assertEquals([status, reason, text], ["limit", "continuations", "5"]);
  assertEquals(seen, [[0, 2, 0], [1, 2, 1], [0, 2, 0], [1, 2, 1], [2, 2, 2]]);
  assertEquals(lines(messages).slice(-5), [
    "assistant 3",
    "stop Go on.",
    "assistant 4",
    "stop Go on.",
    "assistant 5",
  ]);
  assertEquals(eventLines(await eventsOfRun(run)).at(-1), "run.finished limit 5 continuations stop");
});

Deno.test("output: a result is cut after all hooks have seen it whole", async () => {
  const lengths: number[] = [];
  const note: Middleware = {
    tool: async (_, next) => {
      const result = await next();
      lengths.push(textOf(result).length);
      return result;
    },
  };
  const long = tool({
    name: "look",
    description: "Looks",
    input: z.object({}),
    execute: () => text([{ type: "text", text: "abcdef" }, { type: "text", text: "ghijkl" }]),
  });
  const run = agent({ model: scripted(looking(1), "Done."), tools: [long], use: [note], limits: { output: 8 } }).run(
    "Hi",
  );
  const events = await eventsOfRun(run);
  const { messages } = await run.result;
  const parts: readonly ContentPart[] = [{ type: "text", text: "abcdef" }, {
    type: "text",
    text: "gh\n[cut: 2 of 6 characters]",
  }];
  assertEquals(messages[2]?.role === "tool" && messages[2].results.map(({ parts }) => parts), [parts]);
  assertEquals(events.flatMap((event) => event.type === "tool.finished" ? [event.result.parts] : []), [parts]);
  assertEquals(lengths, [12]);
});

Deno.test("output: a result is never cut within a character", async () => {
  const hooks = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "\u{1fa9d}\u{1fa9d}" });
  const { messages } = await agent({ model: scripted(looking(1), "Done."), tools: [hooks], limits: { output: 3 } })
    .run("Hi").result;
  const parts: readonly ContentPart[] = [{ type: "text", text: "\u{1fa9d}\ufffd\n[cut: 3 of 4 characters]" }];
  assertEquals(messages[2]?.role === "tool" && messages[2].results.map(({ parts }) => parts), [parts]);
});

Deno.test("parallel: no more tools run at once than the limit of the agent, the run or a hook allows", async () => {
  const peak = async (limits: Partial<Limits>, ...use: Middleware[]) => {
    const running = gauge();
    const order: number[] = [];
    const work = tool({
      name: "look",
      description: "Looks",
      input: z.object({}),
      execute: (_, { callIndex }) => {
        order.push(callIndex);
        return running.during(settled);
      },
    });
    await agent({ model: scripted(looking(6), "Done."), tools: [work], limits, use }).run("Hi").result;
    assertEquals(order, [0, 1, 2, 3, 4, 5]);
    return running.peak;
  };
  const two: Middleware = {
    session: (ctx, next) => next({ settings: { limits: { ...ctx.settings.limits, parallel: 2 } } }),
  };
  assertEquals([await peak({ parallel: 1 }), await peak({ parallel: 4 }), await peak({}), await peak({}, two)], [
    1,
    4,
    6,
    2,
  ]);
});

Deno.test("parallel: calls that wait for nothing end before all calls of a large batch have begun", async () => {
  const open = gauge();
  const use: Middleware[] = [{ execute: (_, next) => open.during(next) }];
  const model = scripted(looking(100), "Done.");
  await agent({ model, tools: [look], limits: { parallel: 10 }, use }).run("Hi").result;
  assert(open.peak >= 10 && open.peak < 90, `${open.peak} calls were open at once`);
});

Deno.test("time: a limit of a hook counts from the start of the run", async () => {
  using time = new FakeTime();
  const use: Middleware[] = [{
    session: (ctx, next) => next({ settings: { limits: { ...ctx.settings.limits, time: 100, grace: 10 } } }),
  }];
  const model = scripted({ before: () => new Promise(() => {}) });
  const run = agent({ model, use, limits: { time: 50 } }).run("Hi");
  await time.runMicrotasks();
  await time.tickAsync(99);
  await time.runMicrotasks();
  const early = await Promise.race([run.result, Promise.resolve("still")]);
  assertEquals(early, "still");
  await time.tickAsync(1);
  await time.tickAsync(10);
  const { status, reason } = await run.result;
  assertEquals([status, reason], ["limit", "deadline"]);
});

Deno.test("grace: with Infinity, work that ignores its signal is never abandoned", async () => {
  using time = new FakeTime();
  const late = Promise.withResolvers<void>();
  const model = scripted({ before: () => late.promise });
  const run = agent({ model, limits: { grace: Infinity } }).run("Hi");
  await time.runMicrotasks();
  run.stop();
  await time.tickAsync(1_000_000);
  late.resolve();
  const { status } = await run.result;
  assertEquals(status, "aborted");
  assert(!(await eventsOfRun(run)).some(({ type }) => type === "warning"));
});
