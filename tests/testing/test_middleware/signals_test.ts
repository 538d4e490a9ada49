import type { Middleware } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../../support/fake_time.ts";
import { reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() finds a signal that was replaced rather than narrowed", async () => {
  const report = await reportOf((): Middleware => ({
    name: "deaf",
    execute: (_, next) => next({ signal: new AbortController().signal }),
  }));
  assertEquals(report, [
    '"deaf" breaks the law that a middleware stops when its signal aborts:',
    "- at execute, the inner signal does not abort with ctx.signal (when stopped while tools run)",
  ]);
});

Deno.test("testMiddleware() finds a middleware that waits and ignores its signal", async () => {
  using time = new FakeTime();
  const waiting: (() => void)[] = [];
  const ignoring = (): Middleware => ({
    name: "deaf",
    async stop({ signal }, next) {
      const result = await next();
      if (signal.aborted) await new Promise<void>((resolve) => waiting.push(resolve));
      return result;
    },
  });
  const report = await advanceUntilSettled(time, reportOf(ignoring));
  waiting.forEach((resolve) => resolve());
  assertEquals(report, [
    '"deaf" breaks the law that a middleware stops when its signal aborts:',
    "- A hook did not stop when its signal aborted. (when an inner hook is stopped at stop)",
  ]);
});

Deno.test("testMiddleware() stops waiting for a middleware that hangs", async () => {
  const report = await reportOf(() => ({ name: "stuck", prompt: () => new Promise<never>(() => {}) }), { time: 50 });
  assertEquals(report, [
    '"stuck" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- a run did not end within 50 ms (in a plain run)",
  ]);
});
