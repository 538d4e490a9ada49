import { agent, allow, type Event, failed, type Middleware, tool } from "@jizai/jizai";
import { optional } from "@jizai/jizai/middleware/optional";
import { scripted } from "@jizai/jizai/model/scripted";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { passThroughHooks } from "../support/pass_through_hooks.ts";
import { lines } from "../support/transcript_lines.ts";

const echo = tool({
  name: "echo",
  description: "Says it again",
  input: z.object({ text: z.string() }),
  idempotent: true,
  execute: ({ text }) => text,
});

const broken = new Error("broken");

/** Runs one call of `echo`. Returns its result, the skipped hooks, and the reported errors. */
async function echoed(...use: readonly Middleware[]) {
  const errors: unknown[] = [];
  const skipped: string[] = [];
  const model = scripted({ calls: [["echo", { text: "hi" }]] }, "Done.");
  const note = (event: Event) => {
    if (event.type === "warning") skipped.push(`${event.code} ${event.middleware} ${event.point}`);
  };
  const assistant = agent({ model, tools: [echo], use, observe: note });
  const { status, messages, error } = await assistant.run({ prompt: "Go", onError: (error) => errors.push(error) })
    .result;
  return { status, lines: lines(messages), skipped, errors, error };
}

const well = ["user Go", "call echo", "ok hi", "assistant Done."];

Deno.test("optional() obeys the laws of middleware", async () => {
  await testMiddleware(() => optional({ name: "all", ...passThroughHooks }));
});

Deno.test("optional() skips a hook that throws before next(), and warns", async () => {
  const fail = () => Promise.reject(broken);
  const all = { session: fail, prompt: fail, turn: fail, model: fail, tool: fail, execute: fail, stop: fail };
  const { lines, skipped, errors } = await echoed(optional({ name: "all", ...all }));
  assertEquals(lines, well);
  assertEquals(skipped, [
    "hook.skipped all session",
    "hook.skipped all prompt",
    "hook.skipped all turn",
    "hook.skipped all model",
    "hook.skipped all tool",
    "hook.skipped all execute",
    "hook.skipped all turn",
    "hook.skipped all model",
    "hook.skipped all stop",
  ]);
  assertEquals(errors, Array.from({ length: 9 }, () => broken));
});

Deno.test("optional() skips a hook that throws synchronously", async () => {
  const { lines, skipped } = await echoed(optional({
    name: "sync",
    tool() {
      throw broken;
    },
  }));
  assertEquals([lines, skipped], [well, ["hook.skipped sync tool"]]);
});

Deno.test("optional() keeps the result of next() if the hook throws after it", async () => {
  const times: string[] = [];
  const { lines, skipped } = await echoed(
    optional({
      name: "late",
      async tool(_, next) {
        await next({ input: { text: "changed" } });
        throw broken;
      },
      async model(_, next) {
        await next();
        throw broken;
      },
    }),
    {
      name: "count",
      tool(ctx, next) {
        times.push(ctx.call.id);
        return next();
      },
    },
  );
  assertEquals(lines, ["user Go", "call echo", "ok changed", "assistant Done."]);
  assertEquals(skipped, ["hook.skipped late model", "hook.skipped late tool", "hook.skipped late model"]);
  assertEquals(times, ["call_1"]);
});

Deno.test("optional() awaits a next() that the hook did not await", async () => {
  const { lines, skipped } = await echoed(optional({
    name: "hasty",
    tool(_, next) {
      next({ input: { text: "changed" } });
      throw broken;
    },
  }));
  assertEquals(lines, ["user Go", "call echo", "ok changed", "assistant Done."]);
  assertEquals(skipped, ["hook.skipped hasty tool"]);
});

Deno.test("optional() keeps the last of several results", async () => {
  let time = 0;
  const { lines } = await echoed(
    optional({
      name: "twice",
      async execute(_, next) {
        await next();
        await next();
        throw broken;
      },
    }),
    { name: "count", execute: () => Promise.resolve(failed(`${++time}`)) },
  );
  assertEquals(lines, ["user Go", "call echo", "error 2", "assistant Done."]);
});

Deno.test("optional() passes on a failure of the inner layers", async () => {
  const { status, skipped, errors, error } = await echoed(
    optional({ name: "above", prompt: async (_, next) => await next() }),
    { name: "beneath", prompt: () => Promise.reject(broken) },
  );
  assertEquals([status, skipped, errors, error], ["failed", [], [broken], broken]);
});

Deno.test("optional() passes on the inner failure if the hook fails while handling it", async () => {
  const clumsy = new Error("clumsy");
  const { status, skipped, errors, error } = await echoed(
    optional({
      name: "above",
      prompt: (_, next) => next().catch(() => Promise.reject(clumsy)),
    }),
    { name: "beneath", prompt: () => Promise.reject(broken) },
  );
  assertEquals([status, error, skipped], ["failed", broken, ["hook.skipped above prompt"]]);
  assertEquals(errors, [clumsy, broken]);
});

Deno.test("optional() does not weaken approval: a guard that throws denies the call", async () => {
  const { lines, skipped } = await echoed(
    { name: "generous", approval: (_, next) => next().then(() => allow()) },
    optional({ name: "guard", approval: () => Promise.reject(broken) }),
  );
  assertEquals(lines, ["user Go", "call echo", "denied A guard failed.", "assistant Done."]);
  assertEquals(skipped, ["hook.failed undefined approval"]);
});

Deno.test("optional() passes on the end of the run", async () => {
  const ending: Middleware = {
    name: "ending",
    tool: (ctx) => Promise.reject(ctx.run.end("enough", { as: "cancelled" })),
  };
  const { status, lines, skipped } = await echoed(optional(ending));
  assertEquals([status, skipped], ["cancelled", []]);
  assertEquals(lines, ["user Go", "call echo", "aborted Not run: enough."]);
});

Deno.test("optional() passes on a pause of the run", async () => {
  const { status, skipped } = await echoed(optional({
    name: "pausing",
    tool: (ctx) => Promise.reject(ctx.run.pause("Really?")),
  }));
  assertEquals([status, skipped], ["paused", []]);
});

Deno.test("optional() passes on a paused call, and the hook runs again after the answer", async () => {
  const log: string[] = [];
  const asking = tool({
    name: "asking",
    description: "Asks first",
    input: z.object({}),
    ask: true,
    execute: () => "Hi.",
  });
  const assistant = agent({
    model: scripted({ calls: [["asking", {}]] }, "Done."),
    tools: [asking],
    use: [optional({
      name: "log",
      async tool(ctx, next) {
        log.push(`in ${ctx.resumed}`);
        try {
          const result = await next();
          log.push("out");
          return result;
        } finally {
          log.push("finally");
        }
      },
    })],
  });
  const paused = await assistant.run("Go").result;
  const { session } = paused;
  const { status } = await assistant.resume({ session, answers: [{ callId: "call_1", type: "approve" }] }).result;
  assertEquals([paused.status, status], ["paused", "done"]);
  assertEquals(log, ["in false", "finally", "in true", "out", "finally"]);
});

Deno.test("optional() does not skip a hook because the run was stopped", async () => {
  const codes: string[] = [];
  const reached = Promise.withResolvers<void>();
  const run = agent({
    model: scripted(),
    observe: (event) => event.type === "warning" && codes.push(event.code),
    use: [optional({
      name: "waiting",
      prompt: ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
          reached.resolve();
        }),
    })],
  }).run("Go");
  await reached.promise;
  run.stop();
  assertEquals([(await run.result).status, codes], ["aborted", []]);
});

Deno.test("optional() keeps the name, the order and the tools", async () => {
  const own = tool({ name: "own", description: "", input: z.object({}), execute: () => "Own." });
  const base: Middleware = { name: "base" };
  const use = [base, optional({ name: "kit", after: ["base"], requires: ["base"], tools: [own] })];
  const model = scripted({ calls: [["own", {}]] }, "Done.");
  const { messages } = await agent({ model, use }).run("Go").result;
  assertEquals(lines(messages), ["user Go", "call own", "ok Own.", "assistant Done."]);
});
