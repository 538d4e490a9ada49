import { Cleanups } from "@jizai/jizai/kit";
import { stubContext } from "@jizai/jizai/testing";
import { assertEquals, assertRejects } from "@std/assert";

Deno.test("Cleanups calls a cleanup once, and all callers wait for it", async () => {
  const cleanups = new Cleanups();
  const ctx = stubContext("session");
  const log: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  cleanups.set(ctx, () => {
    log.push("called");
    return promise;
  });
  const callers = ["first", "second"].map((name) => cleanups.run(ctx).then(() => log.push(name)));
  await Promise.resolve();
  assertEquals(log, ["called"]);
  resolve();
  await Promise.all(callers);
  await cleanups.run(ctx);
  await cleanups.abort({ ...stubContext("abort"), run: ctx.run }, () => Promise.resolve());
  assertEquals(log, ["called", "first", "second"]);
});

Deno.test("Cleanups rejects for every caller if a cleanup fails, and does not call it again", async () => {
  const cleanups = new Cleanups();
  const ctx = stubContext("session");
  let calls = 0;
  cleanups.set(ctx, () => {
    calls++;
    return Promise.reject(new Error("broken"));
  });
  for (const _ of ["first", "second"]) await assertRejects(() => cleanups.run(ctx), Error, "broken");
  assertEquals(calls, 1);
  await cleanups.run(stubContext("session"));
});
