import { agent, type AnyTool, ask, cancelled, continueWith, type Middleware, type RunResult } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { batch, call, weather } from "../../support/batch.ts";

/** Runs an agent that logs every cleanup. Returns the log and the result. */
async function cleanups(
  use: readonly Middleware[],
  { tools = [weather()], run = {} }: { tools?: readonly AnyTool[]; run?: { readonly signal?: AbortSignal } } = {},
): Promise<{ readonly log: readonly string[]; readonly result: RunResult }> {
  const log: string[] = [];
  const notes: Middleware = {
    name: "notes",
    async abort(ctx, next) {
      log.push(ctx.reason);
      await next();
    },
  };
  const model = scripted({ calls: [call("a")] }, "Done.");
  const result = await agent({ model, tools, use: [notes, ...use], limits: { turns: 2 } })
    .run({ prompt: "Hi", ...run }).result;
  return { log, result };
}

Deno.test("Engine: a run that was stopped or failed is cleaned up once", async () => {
  const gone = new AbortController();
  const leaves = weather(() => gone.abort());
  const stopped = await cleanups([], { tools: [leaves], run: { signal: gone.signal } });
  assertEquals([stopped.result.status, stopped.log], ["aborted", ["signal"]]);

  const broken: Middleware = { name: "broken", stop: () => Promise.reject(new Error("boom")) };
  const failed = await cleanups([broken]);
  assertEquals([failed.result.status, failed.log], ["failed", ["failure"]]);

  using time = new FakeTime();
  const slow = weather((_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
  );
  const late = cleanups([], { tools: [slow] });
  await time.tickAsync(300_000);
  const { result, log } = await late;
  assertEquals([result.status, result.reason, log], ["limit", "deadline", ["deadline"]]);
});

Deno.test("Engine: a run that paused, was refused or reached a limit has no cleanup", async () => {
  const paused = await cleanups([{ name: "asks", approval: () => Promise.resolve(ask("Sure?")) }]);
  assertEquals([paused.result.status, paused.log], ["paused", []]);

  const ends: Middleware = {
    name: "ends",
    turn(ctx) {
      throw ctx.run.end("enough", { as: "failed" });
    },
  };
  const ended = await cleanups([ends]);
  assertEquals([ended.result.status, ended.log], ["failed", ["enough"]]);

  const refuses = await cleanups([{ name: "refuses", prompt: () => Promise.resolve(cancelled("no")) }]);
  assertEquals([refuses.result.status, refuses.log], ["cancelled", []]);

  const limited = await cleanups([{ name: "tireless", stop: () => Promise.resolve(continueWith("more")) }]);
  assertEquals([limited.result.status, limited.log], ["limit", []]);

  const done = await cleanups([]);
  assertEquals([done.result.status, done.log], ["done", []]);
});

Deno.test("Engine: an error in the cleanup or in an error hook never hides the first error", async () => {
  const broken = (name: string): Middleware => ({
    name,
    stop: () => Promise.reject(new Error("the first")),
    error: () => Promise.reject(new Error("the second")),
    abort: () => Promise.reject(new Error("the third")),
  });
  const errors: string[] = [];
  const { result, events } = agent({ model: scripted("Done."), use: [broken("broken")] })
    .run({ prompt: "Hi", onError: (error) => errors.push(String(error)) });
  const { status, error } = await result;
  assertEquals([status, String(error)], ["failed", "Error: the first"]);
  assertEquals(errors, ["Error: the second", "Error: the third", "Error: the first"]);
  const reported = (await Array.fromAsync(events)).flatMap((event) => event.type === "warning" ? [event.point] : []);
  assertEquals(reported, ["error", "abort"]);
});

Deno.test("Engine: a cleanup that hangs is abandoned", async () => {
  using time = new FakeTime();
  const running = batch([call("a")], {
    tools: [weather(() => new Promise(() => {}))],
    use: [{ name: "stuck", abort: () => new Promise<never>(() => {}) }],
    limits: { grace: 100 },
  }).run();
  await time.tickAsync();
  running.stop("enough");
  await time.tickAsync(100);
  await time.tickAsync(100);
  const { result, events } = await running.outcome;
  assertEquals([result.status, result.reason], ["aborted", "enough"]);
  const warnings = events.flatMap((event) => event.type === "warning" ? [`${event.code} ${event.point}`] : []);
  assertEquals(warnings, ["tool.abandoned execute", "hook.abandoned abort"]);
});
