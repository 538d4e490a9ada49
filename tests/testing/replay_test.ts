import {
  agent,
  deny,
  type Event,
  type Middleware,
  ModelError,
  serve,
  state,
  type Store,
  tool,
  ToolError,
} from "@jizai/jizai";
import { budget } from "@jizai/jizai/middleware/budget";
import { handoff } from "@jizai/jizai/middleware/handoff";
import { redact } from "@jizai/jizai/middleware/redact";
import { retry } from "@jizai/jizai/middleware/retry";
import {
  compare,
  readRecording,
  recordable,
  type RecordableAgent,
  type RecordedHandle,
  type Recording,
  replay,
  rerun,
  writeRecording,
} from "@jizai/jizai/replay";
import { scripted } from "@jizai/jizai/model/scripted";
import { memory } from "@jizai/jizai";
import { asTool } from "@jizai/jizai/subagents";
import { outline } from "@jizai/jizai/testing";
import { trace } from "@jizai/jizai/trace";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { eventsOf, post } from "../support/requests.ts";

let weatherCalls = 0;
const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string() }),
  execute: ({ city }, { progress }) => {
    weatherCalls++;
    progress({ city });
    return `Sunny in ${city}, sk-12345678`;
  },
});

const pay = tool({
  name: "pay",
  description: "Pays",
  input: z.object({ amount: z.number() }),
  ask: true,
  execute: ({ amount }) => `Paid ${amount}`,
});

const cities = { calls: [["weather", { city: "Kyoto" }], ["weather", { city: "Oslo" }]] } as const;

async function recordingOf(handle: RecordedHandle<unknown>): Promise<Recording> {
  const recording = await handle.recording;
  assert(recording);
  return recording;
}

/** Replays a recording, and asserts that the events are the recorded ones, byte for byte. */
async function assertReplays<O>(recording: Recording, assistant: RecordableAgent<unknown, O>): Promise<void> {
  const stored = await readRecording(await writeRecording(recording));
  const { events, result } = await rerun(stored, assistant);
  assertEquals(outline(events), outline(recording.events));
  assertEquals(JSON.stringify(events), JSON.stringify(recording.events));
  assertEquals([result.run, result.session, result.text], [recording.run, recording.session, recording.result.text]);
}

Deno.test("a recorded run replays byte for byte, without its model and its tools", async () => {
  const model = scripted(cities, { reasoning: "Hm.", text: ["It is ", "sunny."] });
  const assistant = recordable(agent({ model, tools: [weather], trace, use: [retry()] }));
  const recording = await recordingOf(assistant.run({ prompt: "Weather?", record: true }));
  const asked = [model.requests.length, weatherCalls];
  await assertReplays(recording, assistant);
  assertEquals([model.requests.length, weatherCalls], asked);
});

Deno.test("a replayed run has the start and the times of its recording", async () => {
  const clock: Middleware = {
    name: "clock",
    async turn({ run, emit }, next) {
      const before = run.now();
      const result = await next();
      emit({ type: "data", name: "times", data: { started: run.startedAt, before, after: run.now() } });
      return result;
    },
  };
  const assistant = recordable(agent({ model: scripted(cities, "Sunny."), tools: [weather], use: [clock] }));
  using time = new FakeTime(1_000_000);
  const recording = await recordingOf(assistant.run({ prompt: "Weather?", record: true }));
  const times = recording.events.flatMap((event) => event.type === "data" ? [event.data] : []);
  const inTurn = { started: 1_000_000, before: 1_000_000, after: 1_000_000 };
  assertEquals([times, recording.times], [[inTurn, inTurn], [1_000_000, 1_000_000, 1_000_000, 1_000_000]]);
  time.tick(60_000);
  await assertReplays(recording, assistant);

  // a hook that reads the clock more often gets the last time again
  const { events } = await rerun({ ...recording, times: [1_000_005] }, assistant);
  assertEquals(events.flatMap((event) => event.type === "data" ? [event.data] : []), [
    { started: 1_000_000, before: 1_000_005, after: 1_000_005 },
    { started: 1_000_000, before: 1_000_005, after: 1_000_005 },
  ]);
});

Deno.test("budget() decides in a replay as it did in the recorded run", async () => {
  using time = new FakeTime(1_000_000);
  const slow = tool({
    name: "slow",
    description: "Takes a second",
    input: z.object({}),
    execute: () => {
      time.now += 1_000; // without firing a timer
      return "Done";
    },
  });
  const model = scripted({ calls: [["slow", {}]] }, { calls: [["slow", {}]] }, "Done.");
  const assistant = recordable(agent({ model, tools: [slow], use: [budget({ ms: 1_500 })] }));
  const recording = await recordingOf(assistant.run({ prompt: "Go", record: true }));
  assertEquals(recording.result.status, "limit");
  await assertReplays(recording, assistant);
});

Deno.test("only a run with `record: true` is recorded", async () => {
  const assistant = recordable(agent({ model: scripted("One.", "Two.", "Three.") }));
  assertEquals(await assistant.run({ prompt: "Hi" }).recording, undefined);
  assertEquals(await assistant.run("Hi").recording, undefined);
  assertEquals((await recordingOf(assistant.run({ prompt: "Hi", record: true }))).result, {
    status: "done",
    text: "Three.",
  });
});

Deno.test("concurrent calls replay in the recorded order", async () => {
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = tool({
    name: "slow",
    description: "Waits for the fast one",
    input: z.object({}),
    async execute(_input, { progress }) {
      await first.promise;
      progress("slow");
      second.resolve();
      return "slow";
    },
  });
  const fast = tool({
    name: "fast",
    description: "Goes first and last",
    input: z.object({}),
    async execute(_input, { progress }) {
      progress("fast");
      first.resolve();
      await second.promise;
      progress("fast again");
      return "fast";
    },
  });
  const model = scripted({ calls: [["slow", {}], ["fast", {}]] }, "Done.");
  const assistant = recordable(agent({ model, tools: [slow, fast] }));
  const recording = await recordingOf(assistant.run({ prompt: "Go", record: true }));
  const progress = outline(recording.events).filter((line) => line.startsWith("tool.progress"));
  assertEquals(progress, [
    'tool.progress call_2 "fast"',
    'tool.progress call_1 "slow"',
    'tool.progress call_2 "fast again"',
  ]);
  await assertReplays(recording, assistant);
});

Deno.test("failures of the model and of tools replay, with the ids of their errors", async () => {
  const fragile = tool({
    name: "fragile",
    description: "Fails",
    input: z.object({ how: z.string() }),
    execute({ how }) {
      throw how === "told" ? new ToolError("Try later.") : new RangeError("secret");
    },
  });
  const model = scripted(
    { text: "I ", error: new ModelError("Overloaded", { recoverable: true, status: 503, retryAfter: 1 }) },
    { calls: [["fragile", { how: "told" }], ["fragile", { how: "hidden" }], ["nowhere", {}]] },
    { error: new Error("It broke") },
  );
  const assistant = recordable(
    agent({ model, tools: [fragile], use: [retry({ attempts: 2, delay: 1, afterText: true })] }),
  );
  const recording = await recordingOf(assistant.run({ prompt: "Go", record: true }));
  assertEquals(recording.events.at(-1)?.type, "run.failed");
  await assertReplays(recording, assistant);
});

Deno.test("a pause and its answer replay, each from its own recording", async () => {
  const assistant = recordable(agent({ model: scripted({ calls: [["pay", { amount: 5 }]] }, "Paid."), tools: [pay] }));
  const paused = assistant.run({ prompt: "Pay 5", record: true });
  const { session, questions } = await paused.result;
  const answers = questions.map(({ callId = "" }) => ({ callId, type: "approve" as const }));
  const resumed = await recordingOf(assistant.resume({ session, answers, record: true }));
  assertEquals(resumed.result, { status: "done", text: "Paid." });
  await assertReplays(await recordingOf(paused), assistant);
  await assertReplays(resumed, assistant);
});

Deno.test("a run in a session with messages replays with them", async () => {
  const store: Store = memory();
  const assistant = recordable(agent({ model: scripted("One.", "Two.") }));
  await assistant.run({ prompt: "First", session: "s1", store }).result;
  const recording = await recordingOf(assistant.run({ prompt: "Second", session: "s1", store, record: true }));
  assertEquals(recording.before?.messages.length, 2);
  await assertReplays(recording, assistant);
});

Deno.test("messages, finish and stop of the caller replay where they came", async () => {
  const steered = Promise.withResolvers<void>();
  const wait = tool({
    name: "wait",
    description: "Waits until a message is sent",
    input: z.object({}),
    execute: () => steered.promise.then(() => "waited"),
  });
  const model = scripted({ calls: [["wait", {}]] }, { text: "Half", before: () => handle.stop("enough") });
  const assistant = recordable(agent({ model, tools: [wait] }));
  const handle = assistant.run({ prompt: "Go", record: true });
  for await (const event of handle.events) {
    if (event.type !== "tool.started") continue;
    await handle.send("Faster");
    steered.resolve();
  }
  const recording = await recordingOf(handle);
  assertEquals(recording.result.status, "aborted");
  assert(recording.events.some(({ type }) => type === "steering.injected"));
  await assertReplays(recording, assistant);
});

Deno.test("a stop in the middle of a response replays after the same text", async () => {
  const forever = scripted({
    reads: [[{ type: "text", text: "Once " }], [{ type: "text", text: "upon" }], new Promise<never>(() => {})],
  });
  const assistant = recordable(agent({ model: forever }));
  using time = new FakeTime();
  async function stopAndReplay(): Promise<void> {
    const handle = assistant.run({ prompt: "Tell", record: true });
    for await (const event of handle.events) if (event.type === "text.delta" && event.text === "upon") handle.stop();
    const recording = await recordingOf(handle);
    assertEquals(recording.result, { status: "aborted", text: "Once upon" });
    await assertReplays(recording, assistant);
  }
  await advanceUntilSettled(time, stopAndReplay());
});

Deno.test("the run of a child agent replays as the result of its call", async () => {
  const child = agent({
    name: "reader",
    description: "Reads",
    model: scripted({ calls: [["weather", { city: "Rome" }]] }, "Read."),
    tools: [weather],
  });
  const model = scripted({ calls: [["reader", { prompt: "Read" }]] }, "Done.");
  const assistant = recordable(agent({ model, tools: [asTool(child)] }));
  const handle = assistant.run({ prompt: "Go", record: true });
  const recording = await recordingOf(handle);
  assert(recording.events.some(({ type }) => type === "subagent.event"));
  await assertReplays(recording, assistant);
  const { result } = await rerun(recording, assistant);
  assertEquals(result.messages, (await handle.result).messages); // with the calls inside the child
});

Deno.test("a run that handoff() transfers replays", async () => {
  const refunds = { name: "refunds", description: "Refunds orders", instructions: "You refund.", tools: [pay] };
  const model = scripted({ calls: [["transfer", { agent: "refunds" }]] }, { calls: [["pay", { amount: 5 }]] }, "Paid.");
  const assistant = recordable(agent({ model, use: [handoff([refunds])] }));
  const paused = assistant.run({ prompt: "Money back!", record: true });
  const { session, questions } = await paused.result;
  const recording = await recordingOf(paused);
  assertEquals(recording.result.status, "paused"); // only the specialist has `pay`, which asks
  await assertReplays(recording, assistant);
  assertEquals((await compare(recording, assistant)).report, "");

  const answers = questions.map(({ callId = "" }) => ({ callId, type: "approve" as const }));
  const resumed = await recordingOf(assistant.resume({ session, answers, record: true }));
  assertEquals(resumed.result, { status: "done", text: "Paid." });
  await assertReplays(resumed, assistant);
});

/** Creates an agent whose tool counts its calls in the state, and whose hook emits the counts before each turn. */
function countingAgent(lifetime: "run" | "session") {
  const count = state<{ readonly calls: number }>("count", () => ({ calls: 0 }), { lifetime });
  const hooked = state("hooked", () => 0, { lifetime });
  const counter = tool({
    name: "counter",
    description: "Counts",
    input: z.object({}),
    async execute(_input, ctx) {
      count.update(ctx, ({ calls }) => ({ calls: calls + 1 }));
      ctx.progress(count.get(ctx).calls);
      await Promise.resolve();
      count.update(ctx, ({ calls }) => ({ calls: calls + 10 }));
      return "Counted";
    },
  });
  const shows: Middleware = {
    name: "shows",
    async turn(ctx, next) {
      ctx.emit({ type: "data", name: "counts", data: { ...count.get(ctx), hooked: hooked.get(ctx) } });
      return await next();
    },
    async execute(ctx, next) {
      const result = await next();
      hooked.update(ctx, (n) => n + 1);
      return result;
    },
  };
  return { counter, shows };
}

/** Returns the counts that the hook of a counting agent has emitted. */
function countsIn(events: Recording["events"]) {
  return events.flatMap((event) => event.type === "data" ? [event.data] : []);
}

for (const lifetime of ["run", "session"] as const) {
  Deno.test(`state that parallel calls set for the ${lifetime} replays, and state that hooks set is not recorded`, async () => {
    const { counter, shows } = countingAgent(lifetime);
    const model = scripted({ calls: [["counter", {}], ["counter", {}]] }, "Done.");
    const assistant = recordable(agent({ model, tools: [counter], use: [shows] }));
    const recording = await recordingOf(assistant.run({ prompt: "Go", record: true }));
    assertEquals(countsIn(recording.events), [{ calls: 0, hooked: 0 }, { calls: 22, hooked: 2 }]);
    const written = recording.entries.flatMap((entry) =>
      entry.type === "state" ? [[entry.source, entry.lifetime, entry.name, entry.value]] : []
    );
    assertEquals(written, [
      ["call_1-1", lifetime, "count", { calls: 1 }],
      ["call_2-1", lifetime, "count", { calls: 2 }],
      ["call_1-1", lifetime, "count", { calls: 12 }],
      ["call_2-1", lifetime, "count", { calls: 22 }],
    ]);
    await assertReplays(recording, assistant);

    const events = await Array.fromAsync(agent({ ...replay(recording), use: [shows] }).run("Go").events);
    assertEquals(countsIn(events), countsIn(recording.events));
  });
}

Deno.test("state of the session that a child agent sets replays", async () => {
  const { counter, shows } = countingAgent("session");
  const child = agent({
    name: "child",
    description: "Counts",
    model: scripted({ calls: [["counter", {}]] }, "Counted."),
    tools: [counter],
  });
  const model = scripted({ calls: [["child", { prompt: "Count" }]] }, "Done.");
  const assistant = recordable(agent({ model, tools: [asTool(child)], use: [shows] }));
  const recording = await recordingOf(assistant.run({ prompt: "Go", record: true }));
  assertEquals(countsIn(recording.events), [{ calls: 0, hooked: 0 }, { calls: 11, hooked: 1 }]);
  await assertReplays(recording, assistant);
});

Deno.test("a value of state in a recording does not change with the value of the run", async () => {
  const list = state<string[]>("list", () => []);
  const add = tool({
    name: "add",
    description: "Adds",
    input: z.object({}),
    execute(_input, ctx) {
      list.set(ctx, ["tool"]);
      return "Added";
    },
  });
  const changes: Middleware = {
    name: "changes",
    async turn(ctx, next) {
      ctx.emit({ type: "data", name: "list", data: [...list.get(ctx)] });
      list.get(ctx).push("hook");
      return await next();
    },
  };
  const assistant = recordable(
    agent({ model: scripted({ calls: [["add", {}]] }, "Done."), tools: [add], use: [changes] }),
  );
  const recording = await recordingOf(assistant.run({ prompt: "Go", record: true }));
  for (let time = 0; time < 2; time++) {
    const { events } = await rerun(recording, assistant);
    assertEquals(countsIn(events), [[], ["tool"]]);
  }
});

Deno.test("a recording holds what the model and the tools gave before a hook masked it", async () => {
  const assistant = recordable(agent({
    model: scripted({ calls: [["weather", { city: "Kyoto" }]] }, "Done."),
    tools: [weather],
    use: [redact({ patterns: [/sk-\d+/] })],
  }));
  const recording = await recordingOf(assistant.run({ prompt: "Weather?", record: true }));
  assertEquals(JSON.stringify(recording.events).includes("sk-12345678"), false);
  assertStringIncludes(JSON.stringify(recording.entries), "sk-12345678");
  await assertReplays(recording, assistant);
});

Deno.test("a recording is encrypted with a key, and no other key reads it", async () => {
  const recording = await recordingOf(
    recordable(agent({ model: scripted("Secret.") })).run({ prompt: "Hi", record: true }),
  );
  const key = "a key of at least 32 characters..";
  const text = await writeRecording(recording, { key });
  assertEquals(text.includes("Secret"), false);
  assertEquals(await readRecording(text, { key }), JSON.parse(JSON.stringify(recording)));
  await assertRejects(() => readRecording(text), TypeError, "it is encrypted; expected a key");
  await assertRejects(() => readRecording(text, { key: key.replace("a", "b") }), TypeError, "the key is wrong");
  await assertRejects(() => writeRecording(recording, { key: "short" }), RangeError, "at least 32 bytes");
  await assertRejects(() => readRecording("{}"), TypeError, "expected the JSON that writeRecording() returns");
  await assertRejects(() => readRecording('{"version":2,"entries":[]}'), TypeError, "expected version 1, got 2");
});

Deno.test("compare() reports the decisions, calls and texts that another stack changes", async () => {
  const model = () => scripted(cities, "It is sunny.");
  const recording = await recordingOf(
    recordable(agent({ model: model(), tools: [weather] })).run({ prompt: "Weather?", record: true }),
  );
  assertEquals(await compare(recording, agent({ model: model(), tools: [weather] })), {
    same: true,
    differences: [],
    report: "",
  });

  const guard: Middleware = {
    name: "guard",
    approval: (ctx, next) => ctx.call.id === "call_2" ? Promise.resolve(deny("Not there.")) : next(),
    async tool(ctx, next) {
      return await next(ctx.call.id === "call_1" ? { input: { city: "Nara" } } : {});
    },
    prompt: async (_ctx, next) => ({ ...await next(), text: "It is fine." }),
  };
  const calls = weatherCalls;
  const { same, report } = await compare(recording, agent({ model: model(), tools: [weather], use: [guard] }));
  assertEquals([same, weatherCalls], [false, calls]);
  assertEquals(report.split("\n"), [
    "decision call_2",
    "  - allow by policy",
    "  + deny by policy: Not there.",
    "call call_2",
    "  - ok: Sunny in Oslo, sk-12345678",
    "  + denied: Not there.",
    "call call_1",
    '  - ran weather {"city":"Kyoto"}',
    '  + ran weather {"city":"Nara"}',
    "call call_2",
    '  - ran weather {"city":"Oslo"}',
    "text answer",
    "  - It is sunny.",
    "  + It is fine.",
  ]);
});

Deno.test("compare() asks the agent's own model for another prompt, and answers its calls from the recording", async () => {
  const recorded = recordable(agent({ model: scripted(cities, "It is sunny."), tools: [weather] }));
  const recording = await recordingOf(recorded.run({ prompt: "Weather?", record: true }));
  const model = scripted({
    calls: [{ name: "weather", input: { city: "Oslo" }, id: "call_9" }, {
      name: "weather",
      input: { city: "Rome" },
      id: "call_8",
    }],
  }, "Sunny.");
  const calls = weatherCalls;
  const { differences } = await compare(recording, agent({ model, tools: [weather] }), { model: "agent" });
  assertEquals(weatherCalls, calls);
  const results = differences.filter(({ subject }) => /call_[89]/.test(subject)).map(({ now }) => now);
  assertEquals(results, [
    'weather {"city":"Oslo"}',
    'weather {"city":"Rome"}',
    "allow by policy",
    "allow by policy",
    "ok: Sunny in Oslo, sk-12345678",
    "skipped: The recording has no result for this call.",
    'ran weather {"city":"Oslo"}',
    'ran weather {"city":"Rome"}',
  ]);
});

Deno.test("replay() gives the model and the tools of a recording to a test", async () => {
  const recorded = recordable(agent({ model: scripted(cities, "It is sunny."), tools: [weather] }));
  const recording = await recordingOf(recorded.run({ prompt: "Weather?", record: true }));
  const { events, result } = agent({ ...replay(recording) }).run("Weather?");
  const progress = (await Array.fromAsync(events)).flatMap((event) =>
    event.type === "tool.progress" ? [event.data] : []
  );
  assertEquals([(await result).text, progress], ["It is sunny.", [{ city: "Kyoto" }, { city: "Oslo" }]]);
});

Deno.test("the runs of a server are recorded, each with its requests", async () => {
  const recordings: Recording[] = [];
  const both = Promise.withResolvers<void>();
  const save = (recording: Recording) => {
    if (recordings.push(recording) === 2) both.resolve();
  };
  const assistant = recordable(
    agent({ model: scripted({ calls: [["pay", { amount: 5 }]] }, "Paid."), tools: [pay] }),
    { record: true, save },
  );
  const app = serve(assistant);
  const events = await eventsOf(post(app, "/runs", { prompt: "Pay 5" }));
  const started = events[0];
  assert(started?.type === "run.started");
  await eventsOf(
    post(app, `/sessions/${started.session}/answers`, { answers: [{ callId: "call_1", type: "approve" }] }),
  );
  await both.promise;
  assertEquals(recordings.map(({ result }) => result.status), ["paused", "done"]);
  for (const recording of recordings) await assertReplays(recording, assistant);
});

Deno.test("a call that runs alone replays, and a trace with the details that the server sent", async () => {
  const noon: Middleware = { name: "noon", prompt: (_, next) => next({ context: ["It is noon."] }) };
  for (const page of [undefined, () => new Response()]) {
    const saved = Promise.withResolvers<Recording>();
    const made = agent({ model: scripted("Paid."), tools: [weather, pay], use: [noon], trace });
    const assistant = recordable(made, { record: true, save: saved.resolve });
    const app = serve(assistant, page && { page });
    const [path, body] = page ? ["/calls", { name: "weather", input: { city: "Oslo" } }] : ["/runs", { prompt: "Hi" }];
    await eventsOf(post(app, path, body));
    const recording = await saved.promise;
    const again = await rerun(recording, assistant);
    assertEquals(outline(again.events), outline(recording.events));
    const changes = (events: readonly Event[]) =>
      events.flatMap((event) => event.type === "hook.acted" ? event.changes ?? [] : []);
    assertEquals(changes(again.events), changes(recording.events));
    assertEquals(changes(recording.events).length, page ? 1 : 0);
  }
});

Deno.test("an agent that asks more than was recorded fails, and does not wait", async () => {
  const recording = await recordingOf(
    recordable(agent({ model: scripted("One.") })).run({ prompt: "Hi", record: true }),
  );
  const again: Middleware = {
    name: "again",
    async model(_ctx, next) {
      await next();
      return next();
    },
  };
  const { result } = await rerun(recording, agent({ model: scripted(), use: [again] }));
  assertEquals([result.status, String(result.error)], [
    "failed",
    "Error: Cannot answer the request: the recording has no further response",
  ]);
});
