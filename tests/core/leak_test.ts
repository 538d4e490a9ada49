import { agent, failed, type Middleware, type RunHandle, serve, tryAgain } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { exclusively, watchLeaks } from "../../src/testing/middleware/findings.ts";
import { call, drop, three, weather } from "../support/batch.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { piecesOf, post } from "../support/requests.ts";

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
