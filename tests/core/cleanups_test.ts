import { type AbortContext, agent, type SessionContext } from "@jizai/jizai";
import { Cleanups } from "@jizai/jizai/kit";
import { scripted } from "@jizai/jizai/model/scripted";
import { assert, assertEquals, assertRejects } from "@std/assert";

/** Returns the contexts of a run that was stopped, at its first and at its last point. */
async function contexts(): Promise<{ readonly session: SessionContext; readonly abort: AbortContext }> {
  const found: { session?: SessionContext; abort?: AbortContext } = {};
  const stopping = new AbortController();
  const { status } = await agent({
    model: scripted("Hello!"),
    use: [{
      session(ctx, next) {
        found.session = ctx;
        return next();
      },
      prompt(_ctx, next) {
        stopping.abort();
        return next();
      },
      abort(ctx, next) {
        found.abort = ctx;
        return next();
      },
    }],
  }).run({ prompt: "Hi", signal: stopping.signal }).result;
  const { session, abort } = found;
  assert(status === "aborted" && session && abort);
  return { session, abort };
}

Deno.test("Cleanups calls a cleanup once, and all callers wait for it", async () => {
  const cleanups = new Cleanups();
  const { session: ctx, abort } = await contexts();
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
  await cleanups.abort(abort, () => Promise.resolve());
  assertEquals(log, ["called", "first", "second"]);
});

Deno.test("Cleanups rejects for every caller if a cleanup fails, and does not call it again", async () => {
  const cleanups = new Cleanups();
  const { session: ctx } = await contexts();
  let calls = 0;
  cleanups.set(ctx, () => {
    calls++;
    return Promise.reject(new Error("broken"));
  });
  for (const _ of ["first", "second"]) await assertRejects(() => cleanups.run(ctx), Error, "broken");
  assertEquals(calls, 1);
  await cleanups.run((await contexts()).session);
});
