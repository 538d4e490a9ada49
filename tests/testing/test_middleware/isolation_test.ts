import { denied, type Middleware, state } from "@jizai/jizai";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() finds state in the closure that outlives a run", async () => {
  const counting = (): Middleware => {
    let calls = 0;
    return { name: "counting", tool: (_, next) => ++calls > 8 ? Promise.resolve(denied("Enough.")) : next() };
  };
  const report = await reportOf(counting);
  assertEquals(report.slice(0, 1), ['"counting" breaks the law that a middleware keeps one run apart from another:']);
  await testMiddleware(counting, { shares: true });
});

Deno.test("testMiddleware() finds data that one run passes to another", async () => {
  const report = await reportOf((): Middleware => {
    let prompt = "";
    return {
      name: "telling",
      prompt: (ctx, next) => (prompt = JSON.stringify(ctx.prompt.parts), next()),
      turn: (_, next) => next({ context: [prompt] }),
    };
  });
  assertEquals(report.map((line) => /Beta.*, and alone .*Alpha.* \(in several runs\)/.test(line)), [false, true]);
});

Deno.test("testMiddleware() finds run state that does not survive a pause in another process", async () => {
  const begun = state("begun", () => new Date(0));
  const report = await reportOf((): Middleware => ({
    name: "keeping",
    tool: (ctx, next) => (begun.get(ctx).getTime(), next()),
  }));
  assertEquals(report, [
    '"keeping" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- at tool, it threw TypeError: begun.get(...).getTime is not a function (when a person agrees)",
  ]);
});
