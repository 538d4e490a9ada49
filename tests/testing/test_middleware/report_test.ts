/**
 * Middleware that `testMiddleware()` accepts, and its reports.
 */
import { denied, type Emit, isInterrupt, mapText, type Middleware, state, tool } from "@jizai/jizai";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { everywhere, fixesOf, reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() accepts a middleware that only passes, at every point", async () => {
  await testMiddleware(() => everywhere((_, next) => next()));
  await testMiddleware(() => everywhere(async (_, next) => await next()));
});

Deno.test("testMiddleware() accepts a middleware without hooks", async () => {
  await testMiddleware(() => ({}));
});

Deno.test("testMiddleware() accepts answers, changes and decisions by the rules", async () => {
  const calls = state("good.calls", () => 0);
  const loud = (text: string) => text.toUpperCase();
  await testMiddleware((): Middleware => ({
    name: "good",
    async prompt(ctx, next) {
      return await next({ context: [...ctx.context, "Be brief."] });
    },
    async model(ctx, next) {
      const emit: Emit = (event) =>
        ctx.emit(event.type === "text.delta" ? { ...event, text: loud(event.text) } : event);
      return mapText(await next({ emit, request: { instructions: `${ctx.request.instructions} Be brief.` } }), loud);
    },
    async tool(ctx, next) {
      if (calls.update(ctx, (n) => n + 1) > 4) return denied("Enough.");
      return mapText(await next({ input: { wrapped: ctx.input } }), (text) => `[OK] ${text}`);
    },
    async execute(ctx, next) {
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(new DOMException("late", "TimeoutError")), 1_000);
      try {
        return await next({ signal: AbortSignal.any([ctx.signal, late.signal]) });
      } catch (error) {
        if (isInterrupt(error) || ctx.signal.aborted || !ctx.tool.idempotent) throw error;
        return await next();
      } finally {
        clearTimeout(timer);
      }
    },
  }));
});

Deno.test("testMiddleware() accepts a middleware that ends or pauses the run itself", async () => {
  await testMiddleware((): Middleware => ({ tool: (ctx) => Promise.reject(ctx.run.end("enough", { as: "failed" })) }));
  await testMiddleware((): Middleware => ({
    prompt: (ctx, next) => ctx.resumed ? next() : Promise.reject(ctx.run.pause("Go on?")),
  }));
});

Deno.test("testMiddleware() uses the tools, calls, companions and vars of its options", async () => {
  const weather = tool({
    name: "weather",
    description: "Current weather of a city",
    input: z.object({ city: z.string() }),
    execute: ({ city }) => `Sunny in ${city}`,
  });
  const seen = new Set<string>();
  await testMiddleware((): Middleware<{ user: string }> => ({
    name: "watching",
    after: ["first"],
    requires: ["first"],
    execute: async ({ vars, tool }, next) => (seen.add(`${vars.user} ${tool.name}`), await next()),
  }), { vars: { user: "Ada" }, tools: [weather], calls: [["weather", { city: "Kyoto" }]], use: [{ name: "first" }] });
  assertEquals([...seen].sort(), [
    "Ada careful",
    "Ada echo",
    "Ada fail",
    "Ada helper",
    "Ada repeat",
    "Ada stopper",
    "Ada weather",
  ]);
});

Deno.test("testMiddleware() reports every broken law", async () => {
  const report = await reportOf((): Middleware => ({
    name: "terrible",
    async tool(_, next) {
      try {
        return Object.assign(await next(), { status: "ok" });
      } catch {
        throw new Error("oh");
      }
    },
    turn: async (_, next) => (await next(), await next()),
  }));
  assertEquals(report.filter((line) => !line.startsWith("-")), [
    '"terrible" breaks the law that a middleware passes on the results and errors of the inner layers:',
    '"terrible" breaks the law that a middleware passes on what ends or pauses a run:',
    '"terrible" breaks the law that a middleware calls next() as the point allows, and awaits it:',
  ]);
});

Deno.test("testMiddleware() advises state(), shares: true or the clock of the run where runs differ", async () => {
  const counting = (): Middleware => {
    let count = 0;
    return { name: "counting", turn: (_, next) => next({ context: [`${++count}`] }) };
  };
  assertEquals(await fixesOf(counting), [
    "Keep the data of a run in state(), not in the closure or the module. If runs share data on purpose, such as a cache, " +
    "pass { shares: true }. If the results or events contain the time, use ctx.run.now().",
  ]);
  await testMiddleware(counting, { shares: true });
});

Deno.test("testMiddleware() advises vars for a hook that reads them", async () => {
  const greeting = (): Middleware<{ user: { name: string } }> => ({
    name: "greeting",
    turn: ({ vars }, next) => next({ context: [`Greet ${vars.user.name}`] }),
  });
  assertEquals(await fixesOf(greeting), ['If the hook reads ctx.vars, pass them: { vars: { user: "ann" } }.']);
  await testMiddleware(greeting, { vars: { user: { name: "Ann" } } });
});

Deno.test("testMiddleware() names the fix of each broken law", async () => {
  const hasty = (): Middleware => ({
    name: "hasty",
    async tool(ctx, next) {
      Object.assign(ctx, { name: "other" });
      return await next();
    },
  });
  assertEquals(await fixesOf(hasty), ["Pass a change to next(), or return a new object such as { ...result, parts }."]);
});
