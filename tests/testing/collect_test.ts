import { agent, type Middleware, tool, user } from "@jizai/jizai";
import { asTool } from "@jizai/jizai/subagents";
import { collect, scripted } from "@jizai/jizai/testing";
import { trace } from "@jizai/jizai/trace";
import { assertEquals, assertRejects } from "@std/assert";
import * as z from "zod";

const usage = { input: 1, output: 1 };

const key = tool({
  name: "key",
  description: "Its idempotency key",
  input: z.object({}),
  execute: (_, { idempotencyKey, batchId }) => `${idempotencyKey} in ${batchId}`,
});

/** Sends a message whose call has no result. */
const breaking: Middleware = {
  name: "breaking",
  async model({ request }, next) {
    const call = { type: "call", id: "lost", name: "key", input: {} } as const;
    return await next({ request: { messages: [...request.messages, { role: "assistant", parts: [call] }] } });
  },
};

Deno.test("collect() returns every event and the result, with ids replaced by names", async () => {
  const model = scripted({ calls: [["key", {}]] }, { calls: [["key", {}]] }, "Done.");
  const { events, result } = await collect(agent({ model, tools: [key] }).run("Hi"));
  const batch = (turn: number) => {
    const call = `call_${turn}`;
    return [
      { type: "turn.started", turn },
      { type: "model.started", turn, model: "scripted" },
      { type: "call.delta", turn, call, name: "key", text: "{}" },
      { type: "call.ready", turn, call: { id: call, name: "key", input: {} } },
      { type: "model.finished", turn, finish: "calls", usage, attempts: 1 },
      { type: "tool.started", turn, call, name: "key", batch: `batch-${turn}`, index: 0 },
      { type: "approval.decided", turn, call, decision: "allow", by: "policy" },
      {
        type: "tool.finished",
        turn,
        call,
        result: {
          callId: call,
          name: "key",
          status: "ok",
          parts: [{ type: "text", text: `batch-${turn}:0 in batch-${turn}` }],
        },
      },
      { type: "turn.finished", turn },
    ];
  };
  assertEquals<unknown>(events, [
    { type: "run.started", run: "run", session: "session", resumed: false },
    { type: "session.opened", source: "new" },
    { type: "prompt.accepted", prompt: user("Hi") },
    ...batch(1),
    ...batch(2),
    { type: "turn.started", turn: 3 },
    { type: "model.started", turn: 3, model: "scripted" },
    { type: "text.delta", turn: 3, part: 0, text: "Done." },
    { type: "model.finished", turn: 3, finish: "stop", usage, attempts: 1 },
    { type: "turn.finished", turn: 3 },
    { type: "session.closed" },
    { type: "run.finished", status: "done", text: "Done.", finish: "stop", usage: { input: 3, output: 3 } },
  ]);
  assertEquals([result.run, result.session, result.text], ["run", "session", "Done."]);
});

Deno.test("collect() names the run of a child, and the id of an error", async () => {
  const helper = agent({ name: "helper", model: scripted({ calls: [["key", {}]] }, "Helped."), tools: [key] });
  const model = scripted({ calls: [["helper", { prompt: "Help" }]] }, { error: new Error("broken") });
  const tools = [asTool(helper, { name: "helper", description: "Helps" })];
  const { events, result } = await collect(agent({ model, tools }).run("Hi"));
  const ids = events.flatMap((event) => {
    const inner = event.type === "subagent.event" ? event.event : event;
    if (inner.type === "run.started" || inner.type === "subagent.started") return [inner.run];
    if (inner.type === "tool.started") return [inner.batch];
    return inner.type === "run.failed" ? [inner.error] : [];
  });
  assertEquals(ids, ["run", "batch-1", "run-1", "run-1", "batch-2", "error-1"]);
  assertEquals(String(result.error), "Error: broken");
});

Deno.test("collect() keeps a session that the caller named, and data that is not plain JSON", async () => {
  const seen = new Date(0);
  const dated: Middleware = {
    async execute(ctx, next) {
      ctx.progress({ seen });
      return await next();
    },
  };
  const model = scripted({ calls: [["key", {}]] }, "Done.");
  const { events, result } = await collect(
    agent({ model, tools: [key], use: [dated] }).run({ prompt: "Hi", session: "s1" }),
  );
  assertEquals(result.session, "s1");
  const progress = { type: "tool.progress", turn: 1, call: "call_1", data: { seen } } as const;
  assertEquals(events.filter(({ type }) => type === "tool.progress"), [progress]);
});

Deno.test("collect() sets the duration of hooks to 0", async () => {
  const passing: Middleware = { name: "passing", prompt: (_, next) => next() };
  const { events } = await collect(agent({ model: scripted("Hello!"), use: [passing], trace }).run("Hi"));
  assertEquals(events.filter(({ type }) => type === "hook.acted"), [
    { type: "hook.acted", middleware: "passing", point: "prompt", did: ["passed"], decided: "done", ms: 0 },
  ]);
});

Deno.test("collect() rejects a run in which a hook broke the transcript, and names the hook", async () => {
  const broken = () => agent({ model: scripted("Hello!"), use: [breaking] }).run("Hi");
  await assertRejects(
    () => collect(broken()),
    Error,
    'Cannot collect the run: "breaking" broke the transcript at model; expected valid messages, or { repairs: true }. The messages were not valid: no result for call lost',
  );
  const { result } = await collect(broken(), { repairs: true });
  assertEquals(result.text, "Hello!");
});

Deno.test("collect() rejects repairs in a child", async () => {
  const helper = agent({ name: "helper", model: scripted("Helped."), use: [breaking] });
  const model = scripted({ calls: [["helper", { prompt: "Help" }]] }, "Done.");
  const tools = [asTool(helper, { name: "helper", description: "Helps" })];
  await assertRejects(
    () => collect(agent({ model, tools }).run("Hi")),
    Error,
    'Cannot collect the run: "breaking" broke the transcript at model',
  );
});

Deno.test("collect() also returns stopped and refused runs", async () => {
  const stopped = agent({ model: scripted("Never") });
  const handle = stopped.run("Hi");
  handle.stop("enough");
  const usage = { input: 0, output: 0 };
  assertEquals((await collect(handle)).events.at(-1), { type: "run.aborted", reason: "enough", text: "", usage });
  const refused = await collect(stopped.resume({ session: "none", answers: [] }));
  assertEquals([refused.events, refused.result.status], [[], "failed"]);
});
