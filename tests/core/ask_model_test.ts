import { assertEquals, assertInstanceOf } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import {
  agent,
  callsOf,
  type Emit,
  type Event,
  type FinishReason,
  type Message,
  type Middleware,
  type Model,
  ModelError,
  type ModelEvent,
  type ModelResponse,
  reply,
  tool,
  user,
} from "@jizai/jizai";
import type { NumberedEvent, Sink } from "@jizai/jizai/engine";
import { scripted } from "@jizai/jizai/model/scripted";
import { eventLines, eventsOfRun } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";
import { compacting } from "../support/compacting.ts";

const look = tool({
  name: "look",
  description: "Looks",
  input: z.object({ at: z.string() }),
  execute: ({ at }) => `Seen ${at}`,
});

const done: ModelEvent = { type: "finish", reason: "stop" };
const called: ModelEvent = { type: "finish", reason: "calls" };

/** Returns the provider's events for one call. */
function call(id: string, input: string): ModelEvent[] {
  return [
    { type: "call.start", id, name: "look" },
    { type: "call.delta", id, text: input },
    { type: "call.end", id },
  ];
}

/** Runs a model that sends these events, and then answers "Done.". */
async function receive(events: readonly ModelEvent[], ...use: Middleware[]) {
  const model = scripted({ reads: events.map((event) => [event]) }, "Done.");
  const errors: unknown[] = [];
  const run = agent({ model, tools: [look], use }).run({ prompt: "Hi", onError: (error) => errors.push(error) });
  const all = await eventsOfRun(run);
  const { messages, status } = await run.result;
  return { events: all, reported: eventLines(all), messages, status, errors, requests: model.requests };
}

Deno.test("the events of a model become parts in their order, and a delta names its part", async () => {
  const { messages, reported } = await receive([
    { type: "reasoning", text: "Hm" },
    { type: "reasoning", text: "m." },
    { type: "text", text: "I " },
    { type: "text", text: "look." },
    ...call("a", '{"at":"x"}'),
    { type: "text", text: "And wait." },
    called,
  ]);
  assertEquals(messages[1], {
    role: "assistant",
    parts: [
      { type: "reasoning", text: "Hmm." },
      { type: "text", text: "I look." },
      { type: "call", id: "a", name: "look", input: { at: "x" } },
      { type: "text", text: "And wait." },
    ],
  });
  assertEquals(reported.slice(5, 13), [
    "reasoning.delta 1 0 Hm",
    "reasoning.delta 1 0 m.",
    "text.delta 1 1 I ",
    "text.delta 1 1 look.",
    'call.delta 1 a look {"at":"x"}',
    "call.ready 1",
    "text.delta 1 3 And wait.",
    "model.finished 1 calls 1",
  ]);
});

Deno.test("calls that stream at the same time are kept apart", async () => {
  const { messages, reported } = await receive([
    { type: "call.start", id: "a", name: "look" },
    { type: "call.start", id: "b", name: "look" },
    { type: "call.delta", id: "a", text: '{"at":' },
    { type: "call.delta", id: "b", text: '{"at":"y"}' },
    { type: "call.delta", id: "a", text: '"x"}' },
    { type: "call.end", id: "b" },
    { type: "call.end", id: "a" },
    called,
  ]);
  assertEquals(reported.slice(5, 10), [
    'call.delta 1 a look {"at":',
    'call.delta 1 b look {"at":"y"}',
    'call.delta 1 a look "x"}',
    "call.ready 1",
    "call.ready 1",
  ]);
  assertEquals(lines(messages), ["user Hi", "call look look", "ok Seen y", "ok Seen x", "assistant Done."]);
});

Deno.test("the metadata of a reasoning part is stored with it, and sent back unchanged", async () => {
  const { messages, requests } = await receive([
    { type: "reasoning", text: "Hm" },
    { type: "reasoning", text: "", meta: { signature: "s1" } },
    { type: "reasoning", text: "", meta: { redacted: "s2" } },
    { type: "reasoning", text: "So." },
    ...call("a", '{"at":"x"}'),
    called,
  ]);
  const thought: Message = {
    role: "assistant",
    parts: [
      { type: "reasoning", text: "Hm", meta: { signature: "s1" } },
      { type: "reasoning", text: "", meta: { redacted: "s2" } },
      { type: "reasoning", text: "So." },
      { type: "call", id: "a", name: "look", input: { at: "x" } },
    ],
  };
  assertEquals(messages[1], thought);
  assertEquals(requests[1]?.messages[1], thought);
});

Deno.test("an empty text creates no part, and splits none", async () => {
  const { messages, reported } = await receive([
    { type: "text", text: "" },
    { type: "reasoning", text: "Hm" },
    { type: "text", text: "" },
    { type: "reasoning", text: "m." },
    { type: "reasoning", text: "" },
    { type: "text", text: "Yes" },
    { type: "reasoning", text: "" },
    { type: "text", text: "." },
    done,
  ]);
  assertEquals(messages[1], {
    role: "assistant",
    parts: [{ type: "reasoning", text: "Hmm." }, { type: "text", text: "Yes." }],
  });
  assertEquals(reported.slice(5, 10), [
    "reasoning.delta 1 0 Hm",
    "reasoning.delta 1 0 m.",
    "text.delta 1 1 Yes",
    "text.delta 1 1 .",
    "model.finished 1 stop 1",
  ]);
});

Deno.test("a stream that ends without a finish event counts as cut", async () => {
  const decidedOn: unknown[] = [];
  const watch: Middleware = {
    error: (ctx, next) => {
      decidedOn.push([ctx.source, ctx.recoverable]);
      return next();
    },
  };
  const { reported, messages, errors } = await receive([{ type: "text", text: "Hel" }, ...call("a", "{}")], watch);
  assertEquals(reported.slice(5), [
    "text.delta 1 0 Hel",
    "call.delta 1 a look {}",
    "call.ready 1",
    "session.closed",
    "run.failed uuid The run failed. unavailable",
  ]);
  assertEquals(lines(messages), ["user Hi", "assistant Hel"]);
  const [error] = errors;
  assertInstanceOf(error, ModelError);
  assertEquals(error.message, "Cannot complete turn 1: the stream of scripted was cut");
  assertEquals(decidedOn, [["model", true]]);
});

Deno.test("a model may report no usage", async () => {
  const { events } = await receive([{ type: "text", text: "Hello!" }, done]);
  const none = { input: 0, output: 0 };
  assertEquals(events.slice(6), [
    { type: "model.finished", turn: 1, finish: "stop", usage: none, attempts: 1 },
    { type: "turn.finished", turn: 1 },
    { type: "session.closed" },
    { type: "run.finished", status: "done", text: "Hello!", finish: "stop", usage: none },
  ]);
});

Deno.test("an input that is not JSON is stored unchanged, answered with an error, and not executed", async () => {
  const { messages, events } = await receive([...call("a", '{"at":'), called]);
  const [made] = messages[1]?.role === "assistant" ? callsOf(messages[1]) : [];
  assertEquals([made?.input, typeof made?.malformed], ['{"at":', "string"]);
  assertEquals(lines(messages).slice(1, 3), [
    "call look",
    `error The input of look is not valid JSON: ${made?.malformed}`,
  ]);
  const [ready] = events.filter((event) => event.type === "call.ready");
  assertEquals(ready?.call, { id: "a", name: "look", input: '{"at":', malformed: made?.malformed ?? "" });
});

Deno.test("an input may be empty, or arrive as a value", async () => {
  const { messages } = await receive([
    { type: "call.start", id: "a", name: "look" },
    { type: "call.end", id: "a" },
    { type: "call.start", id: "b", name: "look" },
    { type: "call.delta", id: "b", text: "ignored" },
    { type: "call.end", id: "b", input: { at: "y" } },
    called,
  ]);
  assertEquals(messages[1], {
    role: "assistant",
    parts: [
      { type: "call", id: "a", name: "look", input: {} },
      { type: "call", id: "b", name: "look", input: { at: "y" } },
    ],
  });
  assertEquals(lines(messages).at(3), "ok Seen y");
});

Deno.test("a call id that the session contains gets a number", async () => {
  const model = scripted(
    { calls: [{ id: "a", name: "look", input: { at: "1" } }, { id: "a", name: "look", input: { at: "2" } }] },
    { calls: [{ id: "a", name: "look", input: { at: "3" } }, { id: "a_2", name: "look", input: { at: "4" } }] },
    "Done.",
  );
  const { messages } = await agent({ model, tools: [look] }).run("Hi").result;
  const ids = messages.flatMap((message) =>
    message.role === "tool"
      ? message.results.map(({ callId, parts }) => `${callId} ${lines([{ role: "user", parts }])}`)
      : []
  );
  assertEquals(ids, ["a user Seen 1", "a_2 user Seen 2", "a_3 user Seen 3", "a_2_2 user Seen 4"]);
});

Deno.test("a call id is not reused within a run whose first calls were removed from the transcript", async () => {
  const keys: string[] = [];
  const work = tool({
    name: "look",
    description: "Looks",
    input: z.object({}),
    execute: (_, { idempotencyKey, run }) => {
      keys.push(idempotencyKey.replace(run.id, "run"));
      return "x".repeat(400);
    },
  });
  const calls = [{ id: "a", name: "look", input: {} }];
  const model = scripted({ calls }, { calls }, { calls }, "Done.");
  await compacting({ model, tools: [work], limits: { context: 150 } }).run("Hi").result;
  assertEquals(keys, ["run:1:0", "run:2:0", "run:3:0"]);
});

Deno.test("an invalid event of a call fails the request", async () => {
  const messages = async (...events: ModelEvent[]) => {
    const { errors, status } = await receive([...events, called]);
    return [status, ...errors.map((error) => error instanceof ModelError && error.message)];
  };
  const failed = ["failed", 'Cannot read call "a": expected its start first'];
  assertEquals(await messages({ type: "call.delta", id: "a", text: "{}" }), failed);
  assertEquals(await messages({ type: "call.end", id: "a" }), failed);
  assertEquals(await messages(...call("a", "{}"), { type: "call.end", id: "a" }), failed);
});

Deno.test("a call without an end fails the request, unless the response was cut", async () => {
  const begun = call("a", "{}").slice(0, 2);
  const outcome = async (reason: FinishReason) => {
    const { errors, status } = await receive([{ type: "text", text: "Hello!" }, ...begun, { type: "finish", reason }]);
    return [status, ...errors.map((error) => error instanceof ModelError && error.message)];
  };
  const failed = ["failed", 'Cannot read call "a": expected its end before the finish'];
  assertEquals([await outcome("calls"), await outcome("stop")], [failed, failed]);
  assertEquals([await outcome("length"), await outcome("filter"), await outcome("other")], [["done"], ["done"], [
    "done",
  ]]);
});

Deno.test("a streamed call that turns out to be one of the provider needs no end", async () => {
  const part = { type: "provider_call", callId: "a", name: "web_search", input: {} } as const;
  const begun = call("a", "{}").slice(0, 2);
  const { errors, status } = await receive([...begun, { type: "part", part }, { type: "finish", reason: "stop" }]);
  assertEquals([status, errors], ["done", []]);
});

Deno.test("a response that a hook returns again makes new calls, and a warning names the hook", async () => {
  let kept: ModelResponse | undefined;
  const cache: Middleware = {
    name: "cache",
    model: async (ctx, next) => ctx.turn === 2 && kept ? kept : kept = await next(),
  };
  const model = scripted({ calls: [{ id: "a", name: "look", input: { at: "x" } }] }, "Done.");
  const run = agent({ model, tools: [look], use: [{ name: "outer", model: (_, next) => next() }, cache] }).run("Hi");
  const events = await eventsOfRun(run);
  assertEquals(events.filter(({ type }) => type === "warning"), [{
    type: "warning",
    code: "transcript.repaired",
    message: "The response was not valid: its calls had ids of other calls",
    middleware: "cache",
    point: "model",
  }]);
  const { messages } = await run.result;
  assertEquals(lines(messages), ["user Hi", "call look", "ok Seen x", "call look", "ok Seen x", "assistant Done."]);
  const ids = messages.flatMap((message) => message.role === "assistant" ? callsOf(message).map(({ id }) => id) : []);
  assertEquals(ids, ["a", "a_2"]);
});

Deno.test("model.finished contains the text if it differs from the deltas", async () => {
  const texts = async (use: Middleware) => {
    const { events } = await receive([{ type: "text", text: "Hel" }, { type: "text", text: "lo!" }, done], use);
    return events.flatMap((event) => event.type === "model.finished" ? [event.text] : []);
  };
  assertEquals(await texts({}), [undefined]);
  assertEquals(await texts({ model: () => Promise.resolve(reply("Mine.")) }), ["Mine."]);
  assertEquals(await texts({ model: async (_, next) => ({ ...await next(), parts: [] }) }), [""]);
  assertEquals(await texts({ model: async (_, next) => ({ ...await next(), finish: "length" }) }), [undefined]);
  const drop: Middleware = {
    model: (ctx, next) => next({ emit: (event) => event.type !== "text.delta" && ctx.emit(event) }),
  };
  assertEquals(await texts(drop), ["Hello!"]);
});

Deno.test("a second next() sends another request, counts the attempt, and resets only deltas that were sent", async () => {
  const attempts: number[] = [];
  const twice: Middleware = {
    model: async (_, next) => {
      try {
        return await next();
      } catch {
        return await next();
      }
    },
  };
  const watch: Middleware = {
    model: (ctx, next) => {
      attempts.push(ctx.attempt);
      return next();
    },
  };
  const play = async (...shown: string[]) => {
    const model = scripted({ text: shown, error: new Error("cut") }, "Hello!");
    return eventLines(await eventsOfRun(agent({ model, use: [twice, watch] }).run("Hi"))).slice(5, -3);
  };
  const thrice: Middleware = { model: (_, next) => next().catch(() => next()).catch(() => next()) };
  const cut = { error: new Error("cut") };
  const third = agent({ model: scripted({ text: "Hel", ...cut }, cut, "Hello!"), use: [thrice] }).run("Hi");
  assertEquals(eventLines(await eventsOfRun(third)).slice(5, -3), [
    "text.delta 1 0 Hel",
    "model.reset 1",
    "text.delta 1 0 Hello!",
    "model.finished 1 stop 3",
  ]);
  const rest = ["text.delta 1 0 Hello!", "model.finished 1 stop 2"];
  assertEquals(await play(), rest);
  assertEquals(await play("Hel"), ["text.delta 1 0 Hel", "model.reset 1", ...rest]);
  assertEquals(attempts, [1, 2, 1, 2]);
});

Deno.test("a model that ends silently when its signal aborts fails with the reason of the signal", async () => {
  using time = new FakeTime();
  const quiet: Model = {
    id: "quiet",
    async *stream(_request, { signal }) {
      yield [{ type: "text", text: "Hel" }];
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
  };
  const timeout: Middleware = { model: (_, next) => next({ signal: AbortSignal.timeout(100) }) };
  const run = agent({ model: quiet, use: [timeout] }).run("Hi");
  await time.runMicrotasks();
  await time.tickAsync(100);
  const { status, error, text } = await run.result;
  assertEquals([status, error instanceof DOMException && error.name, text], ["failed", "TimeoutError", "Hel"]);
});

Deno.test("next() of a model hook changes a request for that attempt only, key by key", async () => {
  const first = scripted();
  const second = scripted({ calls: [["look", { at: "x" }]] }, "Done.");
  const models: string[] = [];
  const use: Middleware[] = [{
    model: async (ctx, next) => {
      const response = await next(ctx.turn > 1 ? {} : { request: { model: { ...second, id: "second" } } });
      models.push(response.model);
      return response;
    },
  }, {
    model: (ctx, next) =>
      next(
        ctx.turn > 1
          ? { request: { model: second } }
          : { request: { instructions: "Be brief.", options: { temperature: 0 } } },
      ),
  }];
  const { messages } = await agent({ model: first, instructions: "Be long.", tools: [look], use }).run("Hi").result;
  assertEquals(
    second.requests.map(({ instructions, options, tools, messages }) => ({ instructions, options, tools, messages })),
    [
      { instructions: "Be brief.", options: { temperature: 0 }, tools: [look.definition], messages: [user("Hi")] },
      { instructions: "Be long.", options: {}, tools: [look.definition], messages: messages.slice(0, 3) },
    ],
  );
  assertEquals(models, ["second", "scripted"]);
});

/** The same event filter at every point that a delta passes. */
function filter(change: (event: Event, emit: Emit) => void): Middleware[] {
  return (["session", "prompt", "turn", "model"] as const).map((point) => ({
    name: point,
    [point]: (ctx: { readonly emit: Emit }, next: (change: { emit: Emit }) => Promise<never>) =>
      next({ emit: (event) => change(event, ctx.emit) }),
  }));
}

Deno.test("an event filter may change and drop deltas, and add events", async () => {
  for (
    const use of filter((event, emit) => {
      if (event.type === "text.delta" && event.text === "lo") return;
      emit(event.type === "text.delta" ? { ...event, text: event.text.toUpperCase() } : event);
      if (event.type === "model.finished") emit({ type: "notice", text: "It has spoken." });
    })
  ) {
    const model = scripted({ text: ["Hel", "lo", "!"] });
    const all = eventLines(await eventsOfRun(agent({ model, use: [use] }).run("Hi"))).filter((line) =>
      !line.startsWith("model.f")
    );
    assertEquals(
      all,
      [
        "run.started run session false",
        "session.opened new",
        "prompt.accepted",
        "turn.started 1",
        "model.started 1 scripted",
        "text.delta 1 0 HEL",
        "text.delta 1 0 !",
        "notice It has spoken.",
        "turn.finished 1",
        "session.closed",
        "run.finished done Hello! stop",
      ].filter((line) => use.name !== "model" || !line.startsWith("notice")),
    );
  }
});

Deno.test("an event filter that drops another event fails the run with an error that says why", async () => {
  const left = async (type: Event["type"], point: string) => {
    const use = filter((event, emit) => event.type === type || emit(event)).filter(({ name }) => name === point);
    const model = scripted({ text: "I look.", calls: [["look", { at: "x" }]] }, "Done.");
    const { status, error } = await agent({ model, tools: [look], use }).run("Hi").result;
    return [status, error instanceof TypeError && error.message];
  };
  const refused = (type: string) => [
    "failed",
    `Cannot drop ${type}: a filter may drop only deltas, progress, notices and data`,
  ];
  assertEquals(await left("prompt.accepted", "session"), refused("prompt.accepted"));
  assertEquals(await left("turn.started", "prompt"), refused("turn.started"));
  assertEquals(await left("model.started", "turn"), refused("model.started"));
  assertEquals(await left("call.ready", "model"), refused("call.ready"));
  assertEquals(await left("tool.started", "turn"), refused("tool.started"));
  assertEquals(await left("tool.finished", "turn"), refused("tool.finished"));
  assertEquals(await left("turn.finished", "prompt"), refused("turn.finished"));
});

Deno.test("no event filter receives run events", async () => {
  const received = new Set<string>();
  const use = filter((event, emit) => {
    received.add(event.type);
    emit(event);
  });
  await agent({ model: scripted("Hello!"), use }).run("Hi").result;
  const all = ["prompt.accepted", "turn.started", "model.started", "text.delta", "model.finished", "turn.finished"];
  assertEquals([...received], all);
});

Deno.test("events emitted together are written within one tick of the event loop", async () => {
  using time = new FakeTime();
  const began = time.now;
  const log: string[] = [];
  const { promise: asked, resolve: answer } = Promise.withResolvers<void>();
  const waits: Middleware = {
    name: "waits",
    async approval(_, next) {
      await asked;
      return await next();
    },
  };
  const echo = tool({ name: "echo", description: "Echoes", input: z.object({}), execute: () => "ok" });
  const model = scripted({ calls: [["echo", {}]] }, "Done.");
  const { events } = agent({ model, tools: [echo], use: [waits] }).run("Hi");
  for await (const event of events) {
    log.push(event.type);
    if (event.type === "tool.started") answer(); // the tool answers, although no event follows
  }
  assertEquals(log.slice(-1), ["run.finished"]);
  assertEquals(time.now, began);
});

Deno.test("events that were read together, or emitted together, are written together", async () => {
  const log: string[] = [];
  const sink: Sink<NumberedEvent> = {
    write: ({ event }) => log.push(event.type),
    cork: () => log.push("("),
    uncork: () => log.push(")"),
    full: undefined,
    close: () => log.push("close"),
  };
  const text = (text: string): ModelEvent => ({ type: "text", text });
  const model = scripted({ reads: [[text("a"), text("b")], [text("c"), done]] });
  await agent({ model }).start({ prompt: "Hi" }, sink).result;
  assertEquals(
    log.join(" "),
    [
      "( run.started session.opened prompt.accepted turn.started model.started",
      "( text.delta text.delta )",
      "( text.delta )",
      "( model.finished turn.finished session.closed run.finished ) close",
    ].join(" "),
  );
});

Deno.test("a model is read no faster than its events are written, and a full sink does not delay the end", async () => {
  let room = Promise.withResolvers<void>();
  const written: string[] = [];
  const sink: Sink<NumberedEvent> = {
    write: ({ event }) => written.push(event.type),
    cork() {},
    uncork() {},
    get full() {
      return room.promise;
    },
    close() {},
  };
  const deltas = () => written.filter((type) => type === "text.delta").length;
  const tick = () => new Promise((resolve) => setTimeout(resolve));
  const run = agent({ model: scripted({ text: ["a", "b", "c"] }) }).start({ prompt: "Hi" }, sink);
  await tick();
  assertEquals(deltas(), 1);
  room.resolve();
  room = Promise.withResolvers();
  await tick();
  assertEquals(deltas(), 2);
  run.stop();
  const { status, text } = await run.result;
  assertEquals([status, text, deltas()], ["aborted", "ab", 2]);
});

Deno.test("a model that ignores its signal is abandoned, and its later events are dropped", async () => {
  using time = new FakeTime();
  const late = Promise.withResolvers<ModelEvent[]>();
  const model = scripted({ reads: [[{ type: "text", text: "Once" }], late.promise, [done]] });
  const run = agent({ model, limits: { grace: 500 } }).run("A story");
  await time.runMicrotasks();
  run.stop();
  await time.tickAsync(499);
  await time.runMicrotasks();
  late.resolve([{ type: "text", text: " upon" }]);
  assertEquals((await run.result).text, "Once");

  const never = Promise.withResolvers<ModelEvent[]>();
  const ignoresSignal = scripted({ reads: [[{ type: "text", text: "Once" }], never.promise, [done]] });
  const second = agent({ model: ignoresSignal, limits: { grace: 500 } }).run("A story");
  await time.runMicrotasks();
  second.stop();
  await time.tickAsync(500);
  const ending = [
    "text.delta 1 0 Once",
    "warning hook.abandoned The model scripted did not stop when its signal aborted. model",
    "session.closed",
    "run.aborted stop Once",
  ];
  assertEquals(eventLines(await eventsOfRun(second)).slice(5), ending);
  never.resolve([{ type: "text", text: " upon" }]);
  await time.runMicrotasks();
  assertEquals((await second.result).text, "Once");
});
