import { agent, ask, type Event, type Middleware, tool, user } from "@jizai/jizai";
import { collect, outline, scripted } from "@jizai/jizai/testing";
import { trace } from "@jizai/jizai/trace";
import { assertEquals } from "@std/assert";
import * as z from "zod";

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
  assertEquals([...lines.slice(9), ...outline(events).slice(0, 6)], [
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
