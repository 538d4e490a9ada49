import { isInterrupt, type Middleware } from "@jizai/jizai";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() finds a middleware that throws an error of its own", async () => {
  const report = await reportOf(() => ({ name: "own", stop: () => Promise.reject(new Error("mine")) }));
  assertEquals(report, [
    '"own" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- at stop, it threw Error: mine (in a plain run)",
  ]);
});

Deno.test("testMiddleware() finds a middleware that hides a failure behind its own", async () => {
  const report = await reportOf((): Middleware => ({
    name: "hiding",
    async execute(_, next) {
      try {
        return await next();
      } catch (error) {
        if (isInterrupt(error)) throw error;
        throw new Error("hidden");
      }
    },
  }));
  assertEquals(report, [
    '"hiding" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- at execute, Error: fail always fails was thrown by the inner layers, and it threw Error: hidden (in a plain run)",
    "- at execute, Error: trouble was thrown by the inner layers, and it threw Error: hidden (when an inner hook throws at execute)",
  ]);
});

Deno.test("testMiddleware() accepts a failure as the cause of another", async () => {
  await testMiddleware((): Middleware => ({
    async execute(_, next) {
      try {
        return await next();
      } catch (cause) {
        throw isInterrupt(cause) ? cause : new Error("wrapped", { cause });
      }
    },
  }));
});

Deno.test("testMiddleware() finds a hook that does not return", async () => {
  const report = await reportOf((): Middleware => ({
    name: "silent",
    approval: (_, next) => next().then(() => undefined as never),
  }));
  assertEquals(report, [
    '"silent" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- at approval, it returned nothing (in a plain run)",
  ]);
});
