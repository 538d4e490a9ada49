import { assert, assertEquals, assertInstanceOf, assertStrictEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import {
  abortRun,
  agent,
  type AnyTool,
  compacted,
  End,
  type EndOptions,
  type Event,
  memory,
  type Message,
  type Middleware,
  type Model,
  ModelError,
  type Scope,
  skip,
  tool,
  tryAgain,
  user,
  vars,
} from "@jizai/jizai";
import { subagents } from "@jizai/jizai/middleware/subagents";
import { scripted } from "@jizai/jizai/model/scripted";
import { eventLines, eventsOfRun, named, startedOver } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";
import { captured } from "../support/console_errors.ts";
import { compacting } from "../support/compacting.ts";

/** A tool that waits until `size` of its calls run. */
function meeting(size: number): AnyTool {
  const all = Promise.withResolvers<void>();
  let here = 0;
  return tool({
    name: "meet",
    description: "Waits for the others",
    input: z.object({ who: z.string() }),
    execute: async ({ who }) => {
      if (++here === size) all.resolve();
      await all.promise;
      return `${who} was there`;
    },
  });
}

/** A model that sends `text` and then waits, until its signal aborts or, if `ignoresSignal`, forever. */
function waitingModel(text: readonly string[], { ignoresSignal = false } = {}): Model {
  return {
    id: "lasting",
    async *stream(_request, { signal }) {
      for (const piece of text) yield [{ type: "text", text: piece }];
      await new Promise((_, reject) => ignoresSignal || signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
}

Deno.test("run() answers a text", async () => {
  const run = agent({ model: scripted("Hello!") }).run("Hi");
  assertEquals(await eventsOfRun(run), [
    { type: "run.started", run: "run", session: "session", resumed: false },
    { type: "session.opened", source: "new" },
    { type: "prompt.accepted", prompt: user("Hi") },
    { type: "turn.started", turn: 1 },
    { type: "model.started", turn: 1, model: "scripted" },
    { type: "text.delta", turn: 1, part: 0, text: "Hello!" },
    { type: "model.finished", turn: 1, finish: "stop", usage: { input: 1, output: 1 }, attempts: 1 },
    { type: "turn.finished", turn: 1 },
    { type: "session.closed" },
    { type: "run.finished", status: "done", text: "Hello!", finish: "stop", usage: { input: 1, output: 1 } },
  ]);
  const result = await run.result;
  assertEquals(named(result, result), {
    status: "done",
    run: "run",
    session: "session",
    text: "Hello!",
    questions: [],
    finish: "stop",
    usage: { input: 1, output: 1 },
    messages: [user("Hi"), { role: "assistant", parts: [{ type: "text", text: "Hello!" }] }],
  });
});

Deno.test("the events of a run form a tree, and its calls overlap", async () => {
  const model = scripted(
    {
      reasoning: "Both.",
      text: ["I ask ", "both."],
      calls: [["meet", { who: "Ada" }], ["meet", { who: "Alan" }]],
      usage: { input: 10, output: 5 },
    },
    { text: "They met.", usage: { input: 20, output: 3, cached: 8 } },
  );
  const [ada, alan] = [{ who: "Ada" }, { who: "Alan" }];
  const met = (who: string) => [{ type: "text" as const, text: `${who} was there` }];
  assertEquals<unknown>(await eventsOfRun(agent({ model, tools: [meeting(2)] }).run("Who meets?")), [
    { type: "run.started", run: "run", session: "session", resumed: false },
    { type: "session.opened", source: "new" },
    { type: "prompt.accepted", prompt: user("Who meets?") },
    { type: "turn.started", turn: 1 },
    { type: "model.started", turn: 1, model: "scripted" },
    { type: "reasoning.delta", turn: 1, part: 0, text: "Both." },
    { type: "text.delta", turn: 1, part: 1, text: "I ask " },
    { type: "text.delta", turn: 1, part: 1, text: "both." },
    { type: "call.delta", turn: 1, call: "call_1", name: "meet", text: JSON.stringify(ada) },
    { type: "call.ready", turn: 1, call: { id: "call_1", name: "meet", input: ada } },
    { type: "call.delta", turn: 1, call: "call_2", name: "meet", text: JSON.stringify(alan) },
    { type: "call.ready", turn: 1, call: { id: "call_2", name: "meet", input: alan } },
    { type: "model.finished", turn: 1, finish: "calls", usage: { input: 10, output: 5 }, attempts: 1 },
    { type: "tool.started", turn: 1, call: "call_1", name: "meet", batch: "run:1", index: 0 },
    { type: "approval.decided", turn: 1, call: "call_1", decision: "allow", by: "policy" },
    { type: "tool.started", turn: 1, call: "call_2", name: "meet", batch: "run:1", index: 1 },
    { type: "approval.decided", turn: 1, call: "call_2", decision: "allow", by: "policy" },
    {
      type: "tool.finished",
      turn: 1,
      call: "call_1",
      result: { callId: "call_1", name: "meet", status: "ok", parts: met("Ada") },
    },
    {
      type: "tool.finished",
      turn: 1,
      call: "call_2",
      result: { callId: "call_2", name: "meet", status: "ok", parts: met("Alan") },
    },
    { type: "turn.finished", turn: 1 },
    { type: "turn.started", turn: 2 },
    { type: "model.started", turn: 2, model: "scripted" },
    { type: "text.delta", turn: 2, part: 0, text: "They met." },
    { type: "model.finished", turn: 2, finish: "stop", usage: { input: 20, output: 3, cached: 8 }, attempts: 1 },
    { type: "turn.finished", turn: 2 },
    { type: "session.closed" },
    {
      type: "run.finished",
      status: "done",
      text: "They met.",
      finish: "stop",
      usage: { input: 30, output: 8, cached: 8 },
    },
  ]);
});

Deno.test("run() accepts the messages that a caller holds, and answers the last one", async () => {
  const history: readonly Message[] = [
    user("Meet Ada"),
    { role: "assistant", parts: [{ type: "call", id: "c1", name: "meet", input: { who: "Ada" } }] },
    {
      role: "tool",
      results: [{ callId: "c1", name: "meet", status: "ok", parts: [{ type: "text", text: "Ada was there" }] }],
    },
    { role: "assistant", parts: [{ type: "text", text: "Done." }] },
    user("Thanks"),
  ];
  const model = scripted("You are welcome.");
  const run = agent({ model }).run({ messages: history });
  const { messages } = await run.result;
  assertEquals(messages, [...history, { role: "assistant", parts: [{ type: "text", text: "You are welcome." }] }]);
  assertEquals(model.requests.map((request) => request.messages), [history]);
  assertEquals(eventLines(await eventsOfRun(run)).slice(0, 4), [
    "run.started run session false",
    "session.opened new",
    "prompt.accepted",
    "turn.started 1",
  ]);
});

Deno.test("run() repairs the messages that a caller holds, and emits a warning", async () => {
  const model = scripted("Hello!");
  const run = agent({ model }).run({
    messages: [
      user("Meet Ada"),
      { role: "assistant", parts: [{ type: "call", id: "c1", name: "meet", input: {} }] },
      user("Hi"),
    ],
  });
  const warnings = (await eventsOfRun(run)).filter(({ type }) => type === "warning");
  assertEquals(warnings, [{
    type: "warning",
    code: "transcript.repaired",
    message: "The messages were not valid: no result for call c1",
    point: "prompt",
  }]);
  const repaired = ["user Meet Ada", "call meet", "skipped There is no result.", "user Hi"];
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [repaired]);
  assertEquals(lines((await run.result).messages), [...repaired, "assistant Hello!"]);
});

Deno.test("run() throws without a prompt, and for invalid limits", () => {
  const assistant = agent({ model: scripted() });
  const prompt = "Cannot run: expected a prompt";
  assertThrows(() => assistant.run({ messages: [] }), TypeError, prompt);
  assertThrows(() => assistant.run({ messages: [user("Hi"), { role: "assistant", parts: [] }] }), TypeError, prompt);
  assertThrows(() => assistant.run({ prompt: "Hi", limits: { turns: -1 } }), RangeError, 'Cannot set limit "turns"');
});

Deno.test("a run finishes without a reader of its events, and keeps them", async () => {
  const text = Array.from({ length: 3_000 }, (_, n) => `${n} `);
  const run = agent({ model: scripted({ text }) }).run("Count");
  assertEquals((await run.result).text, text.join(""));
  const events = await Array.fromAsync(run.events);
  assertEquals(events.filter(({ type }) => type === "text.delta").length, 3_000);
});

Deno.test("a reader that stops reading does not stop the run", async () => {
  const run = agent({ model: scripted({ text: Array.from({ length: 3_000 }, () => "x") }) }).run("Count");
  const reader = run.events.getReader();
  assertEquals((await reader.read()).value?.type, "run.started");
  assertEquals((await run.result).text.length, 3_000);
  await reader.cancel();
});

Deno.test("a reader that leaves the event loop does not stop the run", async () => {
  const run = agent({ model: scripted({ text: ["Hel", "lo!"] }) }).run("Hi");
  for await (const event of run.events) if (event.type === "text.delta") break;
  const { status, text } = await run.result;
  assertEquals([status, text], ["done", "Hello!"]);
});

Deno.test("stop() aborts the run, and keeps the partial answer", async () => {
  const seen: unknown[] = [];
  const watch: Middleware = {
    name: "watch",
    async abort(ctx, next) {
      const { reason, message, open, usage, signal } = ctx;
      seen.push({ reason, message, open, usage, aborted: signal.aborted });
      await next();
    },
  };
  const run = agent({ model: waitingModel(["Once ", "upon"]), use: [watch] }).run("A story");
  const events: Event[] = [];
  for await (const event of run.events) {
    events.push(event);
    if (event.type === "text.delta" && event.text === "upon") {
      run.stop("enough");
      run.stop("twice");
    }
  }
  const result = await run.result;
  run.stop("late");
  assertEquals(eventLines(named(events, result)), [
    "run.started run session false",
    "session.opened new",
    "prompt.accepted",
    "turn.started 1",
    "model.started 1 lasting",
    "text.delta 1 0 Once ",
    "text.delta 1 0 upon",
    "session.closed",
    "run.aborted enough Once upon",
  ]);
  const partial: Message = { role: "assistant", parts: [{ type: "text", text: "Once upon" }] };
  assertEquals(seen, [
    { reason: "enough", message: partial, open: [], usage: { input: 0, output: 0 }, aborted: false },
  ]);
  const { status, reason, text, messages } = result;
  assertEquals({ status, reason, text, messages }, {
    status: "aborted",
    reason: "enough",
    text: "Once upon",
    messages: [user("A story"), partial],
  });
});

Deno.test("a run whose signal has already aborted does nothing", async () => {
  const model = scripted("Hello!");
  const reasons: string[] = [];
  const watch: Middleware = {
    name: "watch",
    prompt: (_, next) => {
      reasons.push("never");
      return next();
    },
    abort: async (ctx, next) => {
      reasons.push(ctx.reason);
      await next();
    },
  };
  const run = agent({ model, use: [watch] }).run({ prompt: "Hi", signal: AbortSignal.abort() });
  assertEquals(eventLines(await eventsOfRun(run)), [
    "run.started run session false",
    "session.opened new",
    "session.closed",
    "run.aborted signal ",
  ]);
  const { status, messages } = await run.result;
  assertEquals([status, messages, model.requests, reasons], ["aborted", [], [], ["signal"]]);
});

Deno.test("a run stops with its signal, and removes its listener at the end", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  let listeners = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = function (...args: Parameters<typeof addEventListener>) {
    listeners++;
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = function (...args: Parameters<typeof removeEventListener>) {
    listeners--;
    removeEventListener.apply(signal, args);
  };
  const done = agent({ model: scripted("Hello!") }).run({ prompt: "Hi", signal });
  assertEquals([(await done.result).status, listeners], ["done", 0]);

  const cut = agent({ model: waitingModel(["Once"]) }).run({ prompt: "Hi", signal });
  for await (const event of cut.events) if (event.type === "text.delta") controller.abort();
  const { status, reason, text } = await cut.result;
  assertEquals([status, reason, text, listeners], ["aborted", "signal", "Once", 0]);
});

Deno.test("a stopped run is aborted, whatever its reason", async () => {
  const statuses: string[] = [];
  const reasons = ["", "stop", "deadline", "recoveries", "lost", "shutdown", "failure", "toString"];
  for (const reason of reasons) {
    const run = agent({ model: waitingModel(["Once"]) }).run("A story");
    for await (const event of run.events) if (event.type === "text.delta") run.stop(reason);
    const { status, reason: endReason, error } = await run.result;
    statuses.push(`${status} ${endReason} ${error}`);
  }
  assertEquals(statuses, reasons.map((reason) => `aborted ${reason} undefined`));
});

Deno.test("a run over its time limit ends as limit, after its cleanup", async () => {
  using time = new FakeTime();
  const reasons: string[] = [];
  const watch: Middleware = {
    name: "watch",
    abort: async (ctx, next) => {
      reasons.push(ctx.reason);
      await next();
    },
  };
  const run = agent({ model: waitingModel(["Once"], { ignoresSignal: true }), use: [watch], limits: { time: 5_000 } })
    .run(
      "A story",
    );
  await time.tickAsync(4_999);
  await time.runMicrotasks();
  assertEquals(reasons, []);
  await time.tickAsync(1);
  await time.tickAsync(1_000); // the model ignores its signal: this is its grace period
  assertEquals(eventLines(await eventsOfRun(run)).slice(-4), [
    "text.delta 1 0 Once",
    "warning hook.abandoned The model lasting did not stop when its signal aborted. model",
    "session.closed",
    "run.finished limit Once deadline",
  ]);
  const { status, reason, text, messages } = await run.result;
  assertEquals([status, reason, text, lines(messages), reasons], [
    "limit",
    "deadline",
    "Once",
    ["user A story", "assistant Once"],
    ["deadline"],
  ]);
});

Deno.test("a time limit beyond what a timer can hold never fires", async () => {
  using time = new FakeTime();
  const limits = { time: 30 * 24 * 60 * 60 * 1_000 };
  const asked = Promise.withResolvers<void>();
  const run = agent({ model: scripted({ text: "Hello!", before: () => asked.promise }), limits }).run("Hi");
  await time.tickAsync(24 * 60 * 60 * 1_000);
  asked.resolve();
  assertEquals((await run.result).status, "done");
});

Deno.test("every status comes with text, usage and messages", async () => {
  const usage = { input: 1, output: 1 };
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({}),
    ask: true,
    execute: () => "Worked.",
  });
  const plain = { model: scripted("Hello!"), tools: [work] };
  const ask = (options: Parameters<typeof agent>[0]) => agent(options).run("Hi").result;
  const calling = () => scripted({ text: "I work.", calls: [["work", {}]] });
  const results = await Promise.all([
    ask(plain),
    ask({ ...plain, model: calling() }),
    ask({ ...plain, use: [{ prompt: () => Promise.resolve({ status: "cancelled", text: "", reason: "no" }) }] }),
    ask({ ...plain, model: scripted({ text: "Hel", error: new Error("cut") }) }),
    ask({
      ...plain,
      model: calling(),
      limits: { turns: 1 },
      use: [{ approval: () => Promise.resolve({ type: "deny", reason: "No." }) }],
    }),
  ]);
  assertEquals(
    results.map(({ status, reason, text, usage, messages }) => ({
      status,
      reason,
      text,
      usage,
      lines: lines(messages),
    })),
    [
      { status: "done", reason: undefined, text: "Hello!", usage, lines: ["user Hi", "assistant Hello!"] },
      { status: "paused", reason: undefined, text: "I work.", usage, lines: ["user Hi"] },
      { status: "cancelled", reason: "no", text: "", usage: { input: 0, output: 0 }, lines: [] },
      {
        status: "failed",
        reason: "failure",
        text: "Hel",
        usage: { input: 0, output: 0 },
        lines: ["user Hi", "assistant Hel"],
      },
      {
        status: "limit",
        reason: "turns",
        text: "I work.",
        usage,
        lines: ["user Hi", "assistant I work.", "call work", "denied No."],
      },
    ],
  );
});

/** Runs a hook that ends the run. Returns the outcome and the transcript. */
async function ending(hook: Middleware, model = scripted("Hello!")) {
  const { status, reason, text, messages } = await agent({ model, use: [hook] }).run("Hi").result;
  return [status, reason, text, ...lines(messages)];
}

Deno.test("a thrown end() ends the run immediately", async () => {
  const ended = ["cancelled", "enough"];
  const end = (ctx: Scope) => Promise.reject(ctx.run.end("enough"));
  assertEquals(await ending({ session: end }), [...ended, ""]);
  assertEquals(await ending({ prompt: end }), [...ended, ""]);
  assertEquals(await ending({ turn: end }), [...ended, "", "user Hi"]);
  assertEquals(await ending({ model: end }), [...ended, "", "user Hi"]);
  assertEquals(await ending({ stop: end }), [...ended, "Hello!", "user Hi", "assistant Hello!"]);
});

Deno.test("end() without a throw ends the run after its point", async () => {
  const ended = ["cancelled", "enough", "Hello!", "user Hi", "assistant Hello!"];
  const calling = () => scripted({ text: "Hello!", calls: [["work", {}]] });
  async function end<R>(ctx: Scope, next: () => Promise<R>): Promise<R> {
    const answer = await next();
    ctx.run.end("enough");
    return answer;
  }
  assertEquals(await ending({ prompt: end }), ended);
  assertEquals(await ending({ turn: end }), ended);
  assertEquals(await ending({ model: end }), ended);
  assertEquals(await ending({ stop: end }), ended);
  assertEquals(await ending({ model: end }, calling()), [...ended, "call work", "aborted Stopped before it was done."]);
});

Deno.test("end() keeps the deltas that were sent", async () => {
  const end: Middleware = { model: async (ctx, next) => Promise.reject(await next() && ctx.run.end("enough")) };
  assertEquals(await ending(end), ["cancelled", "enough", "Hello!", "user Hi", "assistant Hello!"]);
});

Deno.test("end() sets the status of the run, and may roll it back", async () => {
  const end = (options: EndOptions): Middleware => ({ stop: (ctx) => Promise.reject(ctx.run.end("enough", options)) });
  const kept = ["user Hi", "assistant Hello!"];
  assertEquals(await ending(end({})), ["cancelled", "enough", "Hello!", ...kept]);
  assertEquals(await ending(end({ as: "done" })), ["done", "enough", "Hello!", ...kept]);
  assertEquals(await ending(end({ as: "limit" })), ["limit", "enough", "Hello!", ...kept]);
  assertEquals(await ending(end({ as: "cancelled" })), ["cancelled", "enough", "Hello!", ...kept]);
  assertEquals(await ending(end({ as: "failed" })), ["failed", "enough", "Hello!", ...kept]);
  assertEquals(await ending(end({ as: "cancelled", rollback: true })), ["cancelled", "enough", ""]);
});

Deno.test("end() throws for a status or an option that it does not have", async () => {
  for (
    const [options, message] of [
      [{ as: "ended" }, "Cannot end the run: `as` is ended; expected done, limit, cancelled, failed"],
      [{ as: 1 }, "Cannot end the run: `as` is number; expected done, limit, cancelled, failed"],
      [
        { status: "limit" },
        'Cannot end the run: there is no option "status"; expected one of as, rollback, withhold, tree',
      ],
      ["limit", "Cannot end the run: got String; expected an object with as, rollback, withhold, tree"],
    ] as const
  ) {
    const hook: Middleware = { stop: (ctx) => Promise.reject(ctx.run.end("enough", options as never)) };
    const { status, error } = await agent({ model: scripted("Hello!"), use: [hook] })
      .run({ prompt: "Hi", onError() {} }).result;
    assertEquals([status, error instanceof TypeError && error.message], ["failed", message]);
  }
});

Deno.test("end() as failed reports the reason to the operator", async () => {
  const reported: unknown[] = [];
  const use: Middleware[] = [{ stop: (ctx) => Promise.reject(ctx.run.end("no good", { as: "failed" })) }];
  const run = agent({ model: scripted("Hello!"), use })
    .run({ prompt: "Hi", onError: (error, { id }) => reported.push([error, id]) });
  const last = (await Array.fromAsync(run.events)).at(-1);
  const { error } = await run.result;
  assertInstanceOf(error, End);
  assertEquals(error.message, "The run ends: no good");
  assertEquals(reported, [[error, last?.type === "run.failed" && last.error]]);
});

Deno.test("a run without onError writes its errors, and those of its subagents, to the console", async () => {
  const written = captured();
  const child = agent({ name: "child", model: scripted({ error: new Error("child cut") }) });
  const parent = agent({
    model: scripted({ calls: [["child", { prompt: "Go" }]] }, "Done."),
    use: [subagents([child])],
  });
  try {
    await parent.run("Hi").result;
    const stream = agent({ model: scripted({ error: new Error("cut") }) }).run({ prompt: "Hi" });
    const last = (await Array.fromAsync(stream.events)).at(-1);
    assert(last?.type === "run.failed");
    const { error } = await stream.result;
    assertEquals(written.lines.map(([, error]) => error instanceof Error && error.message), ["child cut", "cut"]);
    assertEquals(written.lines[1], [`Error ${last.error} in run ${(await stream.result).run}:`, error]);
  } finally {
    written.restore();
  }
});

Deno.test("a rollback restores the earlier transcript, also after a compaction", async () => {
  const store = memory();
  const model = scripted("One.", "Two.", "Three.");
  const last: Middleware = {
    stop: (ctx) => Promise.reject(ctx.run.end("enough", { rollback: true })),
    compact: () => Promise.resolve(compacted([user("All of it")])),
  };
  const assistant = agent({ model });
  await assistant.run({ prompt: "1", session: "s", store }).result;
  await assistant.run({ prompt: "2", session: "s", store }).result;
  const before = ["user 1", "assistant One.", "user 2", "assistant Two."];
  const { messages } = await compacting({ model, use: [last], limits: { context: 1 } })
    .run({ prompt: "3", session: "s", store }).result;
  assertEquals(lines(messages), before);
  assertEquals(lines((await store.load("s"))?.messages ?? []), before);
});

Deno.test("model and instructions may be chosen per run", async () => {
  const model = scripted(({ instructions }) => instructions);
  const assistant = agent({
    vars: vars<{ name: string }>(),
    model: ({ vars: { name } }) => Promise.resolve({ ...model, id: `model of ${name}` }),
    instructions: ({ vars: { name } }) => Promise.resolve(`You help ${name}.`),
  });
  const run = assistant.run({ prompt: "Hi", vars: { name: "Ada" } });
  assertEquals(eventLines(await eventsOfRun(run)).slice(4, 6), [
    "model.started 1 model of Ada",
    "text.delta 1 0 You help Ada.",
  ]);
});

Deno.test("a run whose model function rejects fails, and closes the session", async () => {
  const assistant = agent({ model: () => Promise.reject(new Error("no key for sk-123")) });
  const run = assistant.run("Hi");
  assertEquals(eventLines(await eventsOfRun(run)), [
    "run.started run session false",
    "session.opened new",
    "session.closed",
    "run.failed uuid The run failed. internal",
  ]);
  assertEquals((await run.result).messages, []);
});

Deno.test("a failure is reported to the operator; the client receives only its id", async () => {
  const secret = new Error("password is hunter2", { cause: "hunter2" });
  const fails: readonly Middleware[] = [
    { session: () => Promise.reject(secret) },
    { prompt: () => Promise.reject(secret) },
    { turn: () => Promise.reject(secret) },
    { model: () => Promise.reject(secret) },
    { stop: () => Promise.reject(secret) },
  ];
  for (const use of fails) {
    const reported: unknown[] = [];
    const run = agent({ model: scripted("Hello!"), use: [use] })
      .run({ prompt: "Hi", onError: (error, { id, run }) => reported.push({ error, id, run }) });
    const events = await Array.fromAsync(run.events);
    const last = events.at(-1);
    const { run: id, messages, error, status } = await run.result;
    assert(last?.type === "run.failed");
    assertEquals(reported, [{ error: secret, id: last.error, run: id }]);
    assertStrictEquals(error, secret);
    assertEquals(status, "failed");
    assert(!JSON.stringify([events, messages]).includes("hunter2"));
  }
});

Deno.test("observers that throw while a failure is reported change nothing", async () => {
  const run = agent({
    model: scripted("Hello!"),
    observe: () => {
      throw new Error("observer");
    },
    use: [{ stop: () => Promise.reject(new Error("first")) }],
  }).run({
    prompt: "Hi",
    onError: () => {
      throw new Error("operator");
    },
  });
  const { status, error, text } = await run.result;
  assertEquals([status, error instanceof Error && error.message, text], ["failed", "first", "Hello!"]);
  const last = (await eventsOfRun(run)).at(-1);
  assertEquals(last?.type, "run.failed");
});

Deno.test("error and abort hooks that throw do not hide the first failure", async () => {
  const received: unknown[] = [];
  const use: Middleware[] = [{
    name: "worse",
    prompt: () => Promise.reject(new Error("first")),
    error: () => Promise.reject(new Error("second")),
    abort: () => Promise.reject(new Error("third")),
  }];
  const run = agent({ model: scripted(), use })
    .run({ prompt: "Hi", onError: (error) => received.push(error instanceof Error && error.message) });
  assertEquals(eventLines(await eventsOfRun(run)), [
    "run.started run session false",
    "session.opened new",
    "warning hook.failed A hook failed while it handled a failure. error uuid",
    "warning hook.failed A hook failed during the cleanup. abort uuid",
    "session.closed",
    "run.failed uuid The run failed. internal",
  ]);
  assertEquals(received, ["second", "third", "first"]);
  const { error } = await run.result;
  assertEquals(error instanceof Error && error.message, "first");
});

Deno.test("an error hook may end or pause the run, at every point", async () => {
  const first = () => Promise.reject(new Error("first"));
  const end = (ctx: Scope) => Promise.reject(ctx.run.end("handled", { as: "cancelled" }));
  const pause = (ctx: Scope) => Promise.reject(ctx.run.pause("What now?"));
  const outcome = async (use: Middleware) => {
    const { status, reason, questions } = await agent({ model: scripted("Hello!"), use: [use] }).run("Hi").result;
    return [status, reason, ...questions.flatMap(({ questions }) => questions)];
  };
  for (const point of ["session", "prompt", "turn", "model", "stop"] as const) {
    assertEquals(await outcome({ [point]: first, error: end }), ["cancelled", "handled"], point);
    assertEquals(await outcome({ [point]: first, error: pause }), ["paused", undefined, "What now?"], point);
  }
});

Deno.test("error hooks run where the error was thrown", async () => {
  const sources: unknown[] = [];
  const use: Middleware = {
    error: (ctx, next) => {
      const { source, recoverable, attempt } = ctx;
      sources.push([source, recoverable, attempt]);
      return next();
    },
  };
  const fail = () => Promise.reject(new Error("no"));
  for (const point of ["session", "prompt", "turn", "model", "stop", "compact"] as const) {
    await compacting({ model: scripted("Hello!"), use: [use, { [point]: fail }], limits: { context: 1 } }).run("Hi")
      .result;
  }
  assertEquals(sources, [
    ["session", false, 1],
    ["prompt", false, 1],
    ["turn", false, 1],
    ["model", false, 1],
    ["stop", false, 1],
    ["compact", false, 1],
  ]);
});

Deno.test("error at model: a retry waits, asks again and resets the deltas", async () => {
  using time = new FakeTime();
  const attempts: unknown[] = [];
  const model = scripted({ text: "Hel", error: new ModelError("busy", { recoverable: true }) }, "Hello!");
  const use: Middleware[] = [{
    model: (ctx, next) => {
      attempts.push(ctx.attempt);
      return next();
    },
    error: (ctx) => {
      attempts.push([ctx.source, ctx.recoverable, ctx.attempt]);
      return Promise.resolve(tryAgain({ after: 2_000 }));
    },
  }];
  const run = agent({ model, use }).run("Hi");
  await time.tickAsync(1_999);
  await time.runMicrotasks();
  assertEquals([model.requests.length, attempts], [1, [1, ["model", true, 1]]]);
  await time.tickAsync(1);
  assertEquals(eventLines(await eventsOfRun(run)), startedOver("text.delta 1 0 Hel"));
  assertEquals(attempts, [1, ["model", true, 1], 2]);
});

Deno.test("error at model: a waiting retry ends with the run", async () => {
  using time = new FakeTime();
  const model = scripted({ text: "Hel", error: new Error("busy") });
  const use: Middleware[] = [{ error: () => Promise.resolve(tryAgain({ after: 60_000 })) }];
  const run = agent({ model, use, limits: { time: 1_000 } }).run("Hi");
  await time.tickAsync(1_000);
  const { status, reason, text, messages } = await run.result;
  assertEquals([status, reason, text, lines(messages)], ["limit", "deadline", "Hel", ["user Hi", "assistant Hel"]]);
});

Deno.test("error at model: skip continues without an answer, and takes back the deltas", async () => {
  const use: Middleware[] = [{ error: () => Promise.resolve(skip()) }];
  const run = agent({ model: scripted({ text: "Hel", error: new Error("cut") }), use }).run("Hi");
  const events = await eventsOfRun(run);
  assertEquals(eventLines(events).slice(5), [
    "text.delta 1 0 Hel",
    "model.reset 1",
    "model.finished 1 empty 1",
    "turn.finished 1",
    "session.closed",
    "run.finished done  empty",
  ]);
  assertEquals(lines((await run.result).messages), ["user Hi"]);
});

Deno.test("error at model: abort keeps the partial answer", async () => {
  const use: Middleware[] = [{ error: () => Promise.resolve(abortRun()) }];
  const run = agent({ model: scripted({ text: "Hel", error: new Error("cut") }), use }).run("Hi");
  assertEquals(eventLines(await eventsOfRun(run)).slice(5), [
    "text.delta 1 0 Hel",
    "session.closed",
    "run.failed uuid The run failed. internal",
  ]);
  const { status, text, messages } = await run.result;
  assertEquals([status, text, lines(messages)], ["failed", "Hel", ["user Hi", "assistant Hel"]]);
});
