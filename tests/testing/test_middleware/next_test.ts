import { finish, type Middleware, reply, text } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import { reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() finds a second next() where it is not allowed, and names the place", async () => {
  const report = await reportOf((): Middleware => ({
    name: "twice",
    async tool(_, next) {
      await next();
      return await next();
    },
  }));
  assertEquals(report, [
    '"twice" breaks the law that a middleware calls next() as the point allows, and awaits it:',
    '- at tool, Cannot call next() twice at tool in "twice": retry at execute (in a plain run)',
  ]);
});

for (
  const [point, middleware] of Object.entries<Middleware>({
    model: { model: (_, next) => (next(), Promise.resolve(reply("Done."))) },
    tool: { tool: (_, next) => (next(), Promise.resolve(text("Done."))) },
    stop: { stop: (_, next) => (next(), Promise.resolve(finish())) },
  })
) {
  Deno.test(`testMiddleware() finds a next() that is not awaited at ${point}`, async () => {
    assertEquals(await reportOf(() => ({ name: "hasty", ...middleware })), [
      '"hasty" breaks the law that a middleware calls next() as the point allows, and awaits it:',
      `- at ${point}, it did not wait for next() (in a plain run)`,
    ]);
  });
}

Deno.test("testMiddleware() finds a race that abandons the inner layers", async () => {
  const report = await reportOf((): Middleware => ({
    name: "racing",
    execute: (_, next) => Promise.race([next(), Promise.reject(new DOMException("late", "TimeoutError"))]),
  }));
  assertEquals(report.slice(-2), [
    '"racing" breaks the law that a middleware calls next() as the point allows, and awaits it:',
    "- at execute, it did not wait for next() (in a plain run)",
  ]);
});
