import { agent, ask, type Event, type Middleware, tool, user } from "@jizai/jizai";
import { asTool } from "@jizai/jizai/subagents";
import { collect, outline, scripted } from "@jizai/jizai/testing";
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
    { type: "run.finished", status: "done", text: "Done.", usage: { input: 3, output: 3 } },
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

const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute({ city }, { progress }) {
    progress({ half: true });
    return `Sunny in ${city}`;
  },
});

Deno.test("outline() returns a line per event of a run with calls", async () => {
  const model = scripted({
    reasoning: ["I look ", "it up."],
    calls: [["weather", { city: "Kyoto" }], ["weather", { city: "Oslo" }]],
  }, { text: ["It is\n", "sunny."] });
  const { events } = await collect(agent({ model, tools: [weather] }).run("Weather?"));
  assertEquals(outline(events), [
    "run.started",
    "session.opened new",
    "prompt.accepted Weather?",
    "turn.started 1",
    "model.started scripted",
    "reasoning.delta I look it up.",
    'call.delta call_1 {"city":"Kyoto"}',
    "call.ready weather call_1",
    'call.delta call_2 {"city":"Oslo"}',
    "call.ready weather call_2",
    "model.finished calls",
    "tool.started weather call_1",
    "approval.decided call_1 allow policy",
    "tool.started weather call_2",
    "approval.decided call_2 allow policy",
    'tool.progress call_1 {"half":true}',
    'tool.progress call_2 {"half":true}',
    "tool.finished call_1 ok Sunny in Kyoto",
    "tool.finished call_2 ok Sunny in Oslo",
    "turn.finished 1",
    "turn.started 2",
    "model.started scripted",
    "text.delta It is\\nsunny.",
    "model.finished stop",
    "turn.finished 2",
    "session.closed",
    "run.finished done It is\\nsunny.",
  ]);
});

Deno.test("outline() contains the calls that the provider runs", async () => {
  const at = { callId: "s1", name: "web_search" } as const;
  const reads = [
    [{ type: "part", part: { type: "provider_call", ...at, input: {} } }],
    [{ type: "part", part: { type: "provider_result", ...at, status: "error", output: null } }],
    [{ type: "finish", reason: "stop" }],
  ] as const;
  const { events } = await collect(agent({ model: scripted({ reads }) }).run("Hi"));
  assertEquals(outline(events).slice(5, 7), ["provider_tool.started web_search s1", "provider_tool.finished s1 error"]);
});

Deno.test("outline() contains a pause, a person's answer, and the acts of hooks", async () => {
  const careful: Middleware = { name: "careful", approval: () => Promise.resolve(ask("Really?")) };
  const model = scripted({ calls: [["weather", { city: "Kyoto" }]] }, "Sunny.");
  const assistant = agent({ model, tools: [weather], use: [careful], trace });
  const handle = assistant.run("Weather?");
  const lines = outline((await collect(handle)).events);
  const { events } = await collect(
    assistant.resume({ session: handle.session, answers: [{ callId: "call_1", type: "approve" }] }),
  );
  assertEquals([...lines.slice(8), ...outline(events).slice(0, 6)], [
    "tool.started weather call_1",
    "hook.acted careful approval call_1 answered ask",
    "approval.asked call_1 Really?",
    "session.closed",
    "run.paused Really?",
    "run.started resumed",
    "session.opened resume",
    "turn.started 1",
    "tool.started weather call_1",
    "hook.acted careful approval call_1 answered ask",
    "approval.decided call_1 allow person",
  ]);
});

Deno.test("outline() puts the name of a child before its events", () => {
  const child = (event: Event): Event => ({ type: "subagent.event", call: "call_1", agent: "helper", event });
  const delta = (text: string) => ({ type: "text.delta", turn: 1, part: 0, text }) as const;
  assertEquals(
    outline([
      { type: "subagent.started", call: "call_1", agent: "helper", run: "run-1" },
      child(delta("Hel")),
      child(delta("ped.")),
      delta("Own."),
      { type: "subagent.finished", call: "call_1", agent: "helper", status: "done" },
    ]),
    [
      "subagent.started helper call_1",
      "helper: text.delta Helped.",
      "text.delta Own.",
      "subagent.finished helper call_1 done",
    ],
  );
});

Deno.test("outline() has a line for every other event", () => {
  const usage = { input: 0, output: 0 };
  assertEquals(
    outline([
      { type: "prompt.accepted", prompt: user("One\nTwo") },
      { type: "model.reset", turn: 1 },
      { type: "notice", text: "Mind the gap." },
      { type: "data", name: "score", data: { points: 3 } },
      { type: "warning", code: "hook.failed", message: "A hook failed.", middleware: "bad", point: "abort" },
      { type: "compact.started", trigger: "auto" },
      { type: "compact.finished", trigger: "auto", status: "compacted", before: 2, after: 1 },
      { type: "file.changed", path: "src/a.ts", change: "add" },
      { type: "cwd.changed", turn: 1, call: "call_1", from: ".", to: "src" },
      { type: "instructions.loaded", path: "src/AGENTS.md", reason: "directory" },
      { type: "run.aborted", reason: "stop", text: "So far", usage },
      { type: "run.finished", status: "limit", reason: "turns", text: "", usage },
    ]),
    [
      "prompt.accepted One\\nTwo",
      "model.reset",
      "notice Mind the gap.",
      'data score {"points":3}',
      "warning hook.failed bad abort",
      "compact.started auto",
      "compact.finished auto",
      "file.changed add src/a.ts",
      "cwd.changed src",
      "instructions.loaded src/AGENTS.md directory",
      "run.aborted stop So far",
      "run.finished limit turns",
    ],
  );
});

Deno.test("outline() of no events is empty, and deltas of two parts are two lines", () => {
  assertEquals(outline([]), []);
  assertEquals(
    outline([
      { type: "call.delta", turn: 1, call: "a", name: "x", text: "{" },
      { type: "call.delta", turn: 1, call: "b", name: "x", text: "{" },
      { type: "call.delta", turn: 1, call: "a", name: "x", text: "}" },
    ]),
    ["call.delta a {", "call.delta b {", "call.delta a }"],
  );
});
