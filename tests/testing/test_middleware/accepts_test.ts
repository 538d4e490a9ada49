import { denied, isInterrupt, mapText, type Middleware, state } from "@jizai/jizai";
import { testMiddleware } from "@jizai/jizai/testing";
import { everywhere } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() accepts a middleware that only passes, at every point", async () => {
  await testMiddleware(() => everywhere((_, next) => next()));
  await testMiddleware(() => everywhere(async (_, next) => await next()));
});

Deno.test("testMiddleware() accepts a middleware without hooks", async () => {
  await testMiddleware(() => ({}));
});

Deno.test("testMiddleware() accepts answers, changes and decisions by the rules", async () => {
  const calls = state("good.calls", () => 0);
  await testMiddleware((): Middleware => ({
    name: "good",
    async prompt(ctx, next) {
      return await next({ context: [...ctx.context, "Be brief."] });
    },
    async model(ctx, next) {
      const response = await next({ request: { instructions: `${ctx.request.instructions} Be brief.` } });
      return mapText(response, (text) => text.toUpperCase());
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
        if (isInterrupt(error) || ctx.signal.aborted) throw error;
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
