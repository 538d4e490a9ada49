import {
  agent,
  denied,
  deny,
  type Event,
  failed,
  type Middleware,
  reply,
  type RunHandle,
  serve,
  text,
  tool,
  ToolError,
  tryAgain,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { trace } from "@jizai/jizai/trace";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { exclusively, watchLeaks } from "../../src/testing/middleware/leaks.ts";
import { call, drop, three, weather } from "../support/batch.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { piecesOf, post } from "../support/requests.ts";
import { eventsOfRun } from "../support/run_events.ts";

const look = tool({
  name: "look",
  description: "Looks",
  input: z.object({ at: z.string() }),
  execute: ({ at }) => `Seen ${at}`,
});

type Acted = Omit<Extract<Event, { type: "hook.acted" }>, "type" | "ms">;

/** Returns the acts of every hook of a run that calls `look` once. */
async function acts(...use: Middleware[]): Promise<Acted[]> {
  const model = scripted({ calls: [["look", { at: "x" }]] }, "Done.");
  const events = await eventsOfRun(agent({ model, tools: [look], use, trace }).run("Hi"));
  return events.flatMap((event) => {
    if (event.type !== "hook.acted") return [];
    const { type: _, ms, ...acted } = event;
    assertEquals(ms, 0); // asserted here, since it differs between runs
    return [acted];
  });
}

Deno.test("a trace says which hooks passed, changed or replaced, and the result", async () => {
  assertEquals(
    await acts(
      { name: "outer", tool: (_, next) => next() },
      { name: "input", tool: (_, next) => next({ input: { at: "y" } }) },
      { name: "output", tool: async (_, next) => ({ ...await next(), status: "error" }) },
      { tool: (ctx, next) => next({ signal: ctx.signal, name: "look" }) },
    ),
    [
      { middleware: "use[3]", did: ["changed"], changed: ["signal", "name"], decided: "ok" },
      { middleware: "output", did: ["replaced"], decided: "error" },
      { middleware: "input", did: ["changed"], changed: ["input"], decided: "error" },
      { middleware: "outer", did: ["passed"], decided: "error" },
    ].map(({ middleware, ...rest }) => ({ middleware, point: "tool", turn: 1, call: "call_1", ...rest }) as Acted),
  );
});

Deno.test("a trace says which hook denied", async () => {
  const call = { turn: 1, call: "call_1" };
  assertEquals(
    await acts(
      { name: "outer", approval: (_, next) => next(), tool: (_, next) => next() },
      { name: "guard", approval: () => Promise.resolve(deny("no")) },
    ),
    [
      { middleware: "guard", point: "approval", ...call, did: ["answered"], decided: "deny" },
      { middleware: "outer", point: "approval", ...call, did: ["passed"], decided: "deny" },
      { middleware: "outer", point: "tool", ...call, did: ["passed"], decided: "denied" },
    ],
  );
  assertEquals(await acts({ name: "block", tool: () => Promise.resolve(denied("no")) }), [
    { middleware: "block", point: "tool", ...call, did: ["answered"], decided: "denied" },
  ]);
});

Deno.test("a trace says which hook retried, and which threw", async () => {
  const call = { turn: 1, call: "call_1" };
  let failures = 0;
  assertEquals(
    await acts(
      { name: "retry", execute: (_, next) => next().catch(() => next()) },
      {
        name: "flaky",
        execute: (_, next) => failures++ > 0 ? next() : Promise.reject(new ToolError("flaky")),
      },
      {
        name: "sync",
        stop: () => {
          throw new Error("sync");
        },
      },
    ),
    [
      { middleware: "flaky", point: "execute", ...call, did: ["threw"] },
      { middleware: "flaky", point: "execute", ...call, did: ["passed"], decided: "ok" },
      { middleware: "retry", point: "execute", ...call, did: ["retried"], decided: "ok" },
      { middleware: "sync", point: "stop", did: ["threw"] },
    ],
  );
});

Deno.test("a trace contains the turn if there is one, and no undefined field", async () => {
  const pass = (_: unknown, next: () => Promise<never>) => next();
  const all = ["session", "prompt", "turn", "model", "tool", "approval", "execute", "stop"] as const;
  const use = { name: "all", ...Object.fromEntries(all.map((point) => [point, pass])) };
  const odd: Middleware = { name: "odd", prompt: (_, next) => next({ prompt: undefined } as object) };
  const acted = await acts(use, odd);
  assertEquals(
    acted.map(({ middleware, point, turn, call, decided, did }) => [middleware, point, turn, call, decided, ...did]),
    [
      ["all", "model", 1, undefined, undefined, "passed"],
      ["all", "approval", 1, "call_1", "allow", "passed"],
      ["all", "execute", 1, "call_1", "ok", "passed"],
      ["all", "tool", 1, "call_1", "ok", "passed"],
      ["all", "turn", 1, undefined, undefined, "passed"],
      ["all", "model", 2, undefined, undefined, "passed"],
      ["all", "turn", 2, undefined, undefined, "passed"],
      ["all", "stop", undefined, undefined, "finish", "passed"],
      ["odd", "prompt", undefined, undefined, "done", "passed"],
      ["all", "prompt", undefined, undefined, "done", "passed"],
      ["all", "session", undefined, undefined, "done", "passed"],
    ],
  );
});

Deno.test("a trace adds an event when a hook leaves, and changes nothing else", async () => {
  const use: Middleware[] = [
    { name: "cache", model: (ctx, next) => ctx.turn === 1 ? next() : Promise.resolve(reply("Mine.")) },
    { name: "mark", tool: async (_, next) => ({ ...text("Seen"), ...await next() }) },
  ];
  const play = async (traces: boolean) => {
    const model = scripted({ calls: [["look", { at: "x" }]] });
    return await eventsOfRun(agent({ model, tools: [look], use, ...(traces && { trace }) }).run("Hi"));
  };
  const [traced, plain] = [await play(true), await play(false)];
  assertEquals(traced.filter(({ type }) => type !== "hook.acted"), plain);
  const types = traced.map((event) => event.type === "hook.acted" ? `${event.middleware} ${event.did}` : event.type);
  assertEquals(types.slice(5), [
    "call.delta",
    "call.ready",
    "cache passed",
    "model.finished",
    "tool.started",
    "approval.decided",
    "mark replaced",
    "tool.finished",
    "turn.finished",
    "turn.started",
    "model.started",
    "cache answered",
    "model.finished",
    "turn.finished",
    "session.closed",
    "run.finished",
  ]);
});

/** Does `work` several times. Returns the timers, and the listeners on a shared signal, that are left. */
async function leftAfter(times: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<readonly string[]> {
  const { signal } = new AbortController();
  let left: readonly string[] = [];
  await exclusively(async () => {
    using time = new FakeTime();
    const watching = watchLeaks();
    watching.track(signal);
    try {
      for (let index = 0; index < times; index++) await advanceUntilSettled(time, work(signal));
      left = watching.list();
    } finally {
      watching.end();
    }
  });
  return left;
}

const narrow: Middleware = {
  name: "narrow",
  model: (ctx, next) => next({ signal: AbortSignal.any([ctx.signal]) }),
  execute: (ctx, next) => next({ signal: AbortSignal.any([ctx.signal]) }),
};

const patient: Middleware = {
  name: "patient",
  error: async ({ attempt }, next) => attempt === 1 ? tryAgain({ after: 1 }) : await next(),
};

/** A tool that waits for its signal, and then ends, or ignores it if `ignoresSignal`. */
function waiting(began: () => void, { ignoresSignal = false } = {}) {
  return weather((_, { signal }) => {
    began();
    return new Promise((resolve) => {
      if (!ignoresSignal) signal.addEventListener("abort", () => resolve("late"), { once: true });
    });
  });
}

/** Stops a run while its tool works. */
async function stopped(signal: AbortSignal, ignoresSignal: boolean): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const tools = [waiting(resolve, { ignoresSignal })];
  const { stop, result } = agent({ model: scripted({ calls: [call("a")] }), tools, limits: { grace: 1 } })
    .run({ prompt: "Hi", signal });
  await promise;
  stop();
  return await result;
}

const endings: Readonly<Record<string, (signal: AbortSignal) => Promise<unknown>>> = {
  "is done": (signal) => run({}, signal).result,
  "makes calls": (signal) => run({ tools: [weather()] }, signal).result,
  "makes calls that take time": (signal) => run({ tools: [weather(() => Promise.resolve("sun"))] }, signal).result,
  "makes calls one after another": (signal) => run({ tools: [weather()], limits: { parallel: 1 } }, signal).result,
  "makes calls that fail": (signal) => run({ tools: [weather(() => failed("rain"))] }, signal).result,
  "makes calls that throw, and are made again": (signal) => {
    return run({ tools: [weather(() => Promise.reject(new Error("rain")))], use: [patient] }, signal).result;
  },
  "has its signals narrowed": (signal) =>
    run({ tools: [weather(() => Promise.resolve("sun"))], use: [narrow] }, signal).result,
  "reaches a limit": (signal) => run({ tools: [weather()], limits: { turns: 1 } }, signal).result,
  "fails": (signal) =>
    agent({ model: scripted({ text: "a", error: new Error("cut") }) }).run({ prompt: "Hi", signal }).result,
  "is stopped": (signal) => stopped(signal, false),
  "is stopped, and leaves a tool behind": (signal) => stopped(signal, true),
  "is not read to its end": async (signal) => {
    const { events, result } = run({}, signal);
    for await (const _ of events) break;
    return await result;
  },
  "has an agent beneath it": (signal) => {
    const child = asTool(agent({ model: scripted("sun") }), { name: "child", description: "A child" });
    const model = scripted({ calls: [["child", { prompt: "Hi" }]] }, "Done.");
    return agent({ model, tools: [child] }).run({ prompt: "Hi", signal }).result;
  },
  "is paused and goes on": async (signal) => {
    const model = scripted({ calls: [call("a", { name: "drop" })] }, "Done.");
    const assistant = agent({ model, tools: [drop()] });
    const { session } = await assistant.run({ prompt: "Hi", signal }).result;
    return await assistant.resume({ session, signal, answers: [{ callId: "a", type: "approve" }] }).result;
  },
  "is served": async () => {
    await (await post(serve(agent({ model: scripted("Hello!") })), "/runs", { prompt: "Hi" })).text();
  },
  "is served to a client that leaves": async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const observe = ({ type }: { readonly type: string }) => type === "run.aborted" && ended.resolve();
    const model = scripted({ calls: [call("a")] });
    const app = serve(agent({ model, tools: [waiting(resolve)], observe: (event) => void observe(event) }));
    const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
    await pieces.until("tool.started");
    await promise;
    await pieces.cancel();
    await ended.promise;
  },
};

/** A run with three calls. */
function run(options: Omit<Parameters<typeof agent>[0], "model">, signal: AbortSignal): RunHandle<unknown> {
  const model = options.tools ? scripted({ calls: three }, "Done.") : scripted("Hello!");
  return agent({ ...options, model }).run({ prompt: "Hi", signal });
}

for (const [ending, work] of Object.entries(endings)) {
  Deno.test(`a run that ${ending} leaves no timer and no listener`, async () => {
    assertEquals(await leftAfter(20, work), []);
  });
}

Deno.test("a hundred parallel calls add as many listeners as one, and the run adds one to its caller's signal", async () => {
  const counts: Record<string, number[]> = { own: [], caller: [] };
  for (const calls of [1, 100]) {
    const { signal: caller } = new AbortController();
    let own = caller;
    let working = 0;
    const all = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<string>();
    const work = weather((_, { signal }) => {
      own = signal;
      if (++working === calls) all.resolve();
      return gate.promise;
    });
    await exclusively(async () => {
      const watching = watchLeaks();
      const count = () => watching.list().filter((line) => line.includes("listener")).length;
      const model = scripted({ calls: Array.from({ length: calls }, (_, index) => call(`${index}`)) }, "Done.");
      const limits = { parallel: calls };
      const { result } = agent({ model, tools: [work], limits }).run({ prompt: "Hi", signal: caller });
      await all.promise;
      watching.track(caller);
      counts.caller?.push(count());
      watching.track(own);
      counts.own?.push(count() - 1);
      gate.resolve("sun");
      await result;
      watching.end();
    });
  }
  assertEquals(counts, { own: [0, 0], caller: [1, 1] });
});
