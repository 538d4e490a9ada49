import { type Middleware } from "@jizai/jizai";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { reportOf } from "../../support/middleware_report.ts";

for (
  const [what, middleware] of Object.entries<Middleware>({
    "an input": { tool: (ctx, next) => (Object.assign(ctx.input as object, { x: 1 }), next()) },
    "a context": { turn: (ctx, next) => (Object.assign(ctx, { context: [] }), next()) },
    "a request": { model: (ctx, next) => (Object.assign(ctx.request, { messages: [] }), next()) },
    "a message": { stop: (ctx, next) => (Object.assign(ctx.message, { parts: [] }), next()) },
    "settings": { session: (ctx, next) => (Object.assign(ctx.settings.limits, { turns: 1 }), next()) },
    "a call": { approval: (ctx, next) => (Object.assign(ctx.call, { name: "other" }), next()) },
    "a result": { execute: async (_, next) => Object.assign(await next(), { status: "ok" }) },
    "an event": {
      prompt: (ctx, next) => next({ emit: (event) => ctx.emit(Object.assign(event, { type: "notice", text: "" })) }),
    },
  })
) {
  Deno.test(`testMiddleware() finds a middleware that writes to ${what}`, async () => {
    const [point] = Object.keys(middleware);
    const report = await reportOf(() => ({ name: "writing", ...middleware }));
    assertEquals(report.map((line) => line.replace(/(TypeError): .* \(/, "$1 (")), [
      '"writing" breaks the law that a middleware changes nothing that it was given:',
      `- at ${point}, TypeError (in a plain run)`,
    ]);
  });
}

Deno.test("testMiddleware() does not change the vars of its caller", async () => {
  const vars = { user: "Ada", seen: [] as string[] };
  const writing = (): Middleware<typeof vars> => ({
    name: "writing",
    prompt: ({ vars }, next) => (Object.assign(vars, { user: "Eve" }), next()),
  });
  const report = await reportOf(writing, { vars });
  assertEquals(report, [
    '"writing" breaks the law that a middleware changes nothing that it was given:',
    "- at prompt, TypeError: Cannot assign to read only property 'user' of object '#<Object>' (in a plain run)",
  ]);
  vars.user = "Bob";
  await testMiddleware((): Middleware<typeof vars> => ({
    prompt: ({ vars }, next) => (vars.seen.push(vars.user), next()),
  }), { vars });
  assertEquals(new Set(vars.seen), new Set(["Bob"]));
});
