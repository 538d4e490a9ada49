import { type Middleware } from "@jizai/jizai";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";
import { everywhere, fixesOf, reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() finds a timer that is not cleared, and the place where it was set", async () => {
  const leaving = (): Middleware => ({
    name: "leaving",
    async execute(_, next) {
      setTimeout(() => {}, 0);
      return await next();
    },
  });
  const { message } = await assertRejects(() => testMiddleware(leaving), Error);
  const place = /- a setTimeout\(\) of 0 ms, set at file:.*leaks_test\.ts:\d+:\d+ \(in a plain run, and \d+ more\)/;
  assertEquals(
    message.replace(place, "..."),
    [
      '"leaving" breaks the law that a middleware leaves no listener and no timer behind:',
      "...",
      "  Clear timers and remove listeners in a finally block.",
    ].join("\n"),
  );
  await new Promise((resolve) => setTimeout(resolve, 1));
});

Deno.test("testMiddleware() finds an interval and a listener that are not removed", async () => {
  const running: ReturnType<typeof setInterval>[] = [];
  const report = await reportOf((): Middleware => ({
    name: "staying",
    prompt(_, next) {
      running.push(setInterval(() => {}, 1_000));
      return next();
    },
    tool({ signal }, next) {
      signal.addEventListener("abort", () => {}, { once: true });
      return next();
    },
  }));
  running.forEach(clearInterval);
  assertEquals(
    report,
    [
      '"staying" breaks the law that a middleware leaves no listener and no timer behind:',
      "- a setInterval() of 1000 ms, set (in a plain run)",
      "- a listener on ctx.signal, added (in a plain run)",
    ].map((line) => line.replace(/, at \w+ \(/, ", at $& (").replace(/, at , (at \w+) \( \(/, ", $1 (")),
  );
});

Deno.test("testMiddleware() restores the timers and listeners, also if a test fails", async () => {
  const before = [globalThis.setTimeout, globalThis.clearInterval, EventTarget.prototype.addEventListener];
  await assertRejects(() => testMiddleware(() => ({ stop: () => Promise.reject(new Error("no")) })));
  const after = [globalThis.setTimeout, globalThis.clearInterval, EventTarget.prototype.addEventListener];
  assertEquals(after.map((each, index) => each === before[index]), [true, true, true]);
});

Deno.test("testMiddleware() keeps parallel tests apart", async () => {
  const before = globalThis.setTimeout;
  const bad = (): Middleware => ({ name: "bad", stop: () => Promise.reject(new Error("no")) });
  const results = await Promise.allSettled([
    testMiddleware(() => everywhere((_, next) => next())),
    testMiddleware(bad),
    testMiddleware(() => everywhere((_, next) => next())),
  ]);
  assertEquals(results.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assertEquals(globalThis.setTimeout === before, true);
});

Deno.test("testMiddleware() ignores timers of the runtime, and reports those of the middleware", async () => {
  // the frame of the function has the place that frames of Node's own modules have
  const keepAlive: () => void = (0, eval)(
    "(() => void setTimeout(() => {}, 1))\n//# sourceURL=node:internal/deps/undici/undici",
  );
  await testMiddleware((): Middleware => ({
    name: "fetching",
    execute: async (_ctx, next) => {
      keepAlive();
      return await next();
    },
  }));
  const timers: ReturnType<typeof setTimeout>[] = [];
  const leaking = (): Middleware => ({
    name: "leaking",
    execute: async (_ctx, next) => {
      timers.push(setTimeout(() => {}, 60_000));
      return await next();
    },
  });
  assertEquals(await fixesOf(leaking), ["Clear timers and remove listeners in a finally block."]);
  for (const timer of timers) clearTimeout(timer);
});
