import { deny, isInterrupt, type Middleware, state, text, textOf, tool } from "@jizai/jizai";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { callHook, stubContext } from "@jizai/jizai/testing";
import { assert, assertEquals, assertRejects } from "@std/assert";
import * as z from "zod";

Deno.test("callHook() calls one hook with a context, and returns its answer", async () => {
  const { approval } = permissions({ deny: ["drop_*"], otherwise: "allow" });
  const ctx = stubContext("approval", { name: "drop_table", input: { table: "users" } });
  const decision = await callHook(approval, ctx, () => Promise.resolve({ type: "allow" as const }));
  assertEquals(decision.type, "deny");
});

Deno.test("stubContext() has the fields of every point, and keeps those that are given", () => {
  const drop = tool({ name: "drop", description: "Drops", input: z.object({}), execute: () => "" });
  const tested = stubContext("execute", {
    tool: drop,
    input: { table: "users" },
    run: { id: "r1" },
    vars: { user: "ann" },
  });
  assertEquals([tested.run.id, tested.run.session, tested.turn, tested.call.input, tested.vars], [
    "r1",
    "session",
    1,
    { table: "users" },
    { user: "ann" },
  ]);
  assertEquals(tested.tool, drop);
  const points = [
    "session",
    "input",
    "prompt",
    "turn",
    "model",
    "tool",
    "approval",
    "execute",
    "stop",
    "compact",
    "subagent",
    "error",
    "abort",
  ] as const;
  for (const point of points) assertEquals(stubContext(point).signal.aborted, false);
});

Deno.test("a hook keeps its state in the run of the stub, and may end it", async () => {
  const used = state("limit.used", () => 0);
  const limit: Middleware = {
    name: "limit",
    tool(ctx, next) {
      if (used.update(ctx, (count) => count + 1) > 1) throw ctx.run.end("enough");
      return next();
    },
  };
  const ctx = stubContext("tool");
  const next = () => Promise.resolve(text("pong"));
  assertEquals(textOf(await callHook(limit.tool, ctx, next)), "pong");
  const error = await callHook(limit.tool, ctx, next).catch((error) => error);
  assert(isInterrupt(error));
});

Deno.test("callHook() rejects a missing hook, a write to the context, and a hook that does not await next()", async () => {
  const empty: Middleware = {};
  const next = () => Promise.resolve({ type: "allow" as const });
  await assertRejects(
    () => callHook(empty.approval, stubContext("approval"), next),
    TypeError,
    "the middleware has none at this point",
  );
  const writing: Middleware = {
    approval(ctx, next) {
      Object.assign(ctx, { name: "other" });
      return next();
    },
  };
  await assertRejects(() => callHook(writing.approval, stubContext("approval"), next), TypeError, "read only");
  const hasty: Middleware = {
    approval(_ctx, next) {
      void next();
      return Promise.resolve(deny("No."));
    },
  };
  const slow = () => new Promise<{ type: "allow" }>(() => {});
  await assertRejects(() => callHook(hasty.approval, stubContext("approval"), slow), Error, "it did not await next()");
});
