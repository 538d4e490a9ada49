import { assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import {
  agent,
  cancelled,
  CapacityError,
  continueWith,
  defaultLimits,
  type Event,
  memory,
  type Message,
  type Middleware,
  pause,
  type PersonAnswer,
  refused,
  type RunResult,
  type Scope,
  SessionError,
  state,
  type Store,
  text,
  textOf,
  tool,
  user,
} from "@jizai/jizai";
import type { NumberedEvent, Sink } from "@jizai/jizai/engine";
import { scripted } from "@jizai/jizai/model/scripted";
import { asTool } from "@jizai/jizai/subagents";
import { eventLines, eventsOfRun, named } from "../support/run_events.ts";
import { lines } from "../support/transcript_lines.ts";
import { withoutSchemas } from "../support/without_schemas.ts";
import { durable } from "@jizai/jizai/session/durable";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { saving } from "../support/saving.ts";

/** A tool that asks a person, and one that runs immediately. */
const tools = [
  tool({
    name: "pay",
    description: "Pays",
    input: z.object({ sum: z.number() }),
    ask: true,
    execute: ({ sum }) => `Paid ${sum}`,
  }),
  tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" }),
];

/** A model that calls `pay` and `look` in its first response. */
function paying() {
  return scripted({ text: "I pay.", calls: [["pay", { sum: 5 }], ["look", {}]] }, "Done.");
}

const approve = { callId: "call_1", type: "approve" } as const;

/** A sink that records the numbered events of a run. */
function ledger() {
  const items: NumberedEvent[] = [];
  const sink: Sink<NumberedEvent> = {
    write: (item) => items.push(item),
    cork() {},
    uncork() {},
    full: undefined,
    close() {},
  };
  return { items, sink };
}

/** Returns how a run of a session was refused. */
async function refusal(result: Promise<RunResult>) {
  const { status, error, messages } = await result;
  assertInstanceOf(error, SessionError);
  return [status, error.code, error.message, messages];
}

Deno.test("a call that needs a person pauses the run, and resume() continues it", async () => {
  const store = memory();
  const model = paying();
  const assistant = agent({ model, tools });
  const { items, sink } = ledger();
  const first = assistant.start({ prompt: "Pay", session: "s", store }, sink);
  const paused = await first.result;
  assertEquals([paused.status, paused.text, withoutSchemas(paused.questions), lines(paused.messages)], [
    "paused",
    "I pay.",
    [{ callId: "call_1", tool: "pay", input: { sum: 5 }, questions: ["Run pay?"] }],
    ["user Pay"],
  ]);
  const middle = items.length;
  const second = assistant.start({ session: "s", store, answers: [approve] }, sink);
  const done = await second.result;
  const events = named(items.map(({ event }) => event), done);
  assertEquals(eventLines(events.slice(0, middle)), [
    "run.started run s false",
    "session.opened new",
    "prompt.accepted",
    "turn.started 1",
    "model.started 1 scripted",
    "text.delta 1 0 I pay.",
    'call.delta 1 call_1 pay {"sum":5}',
    "call.ready 1",
    "call.delta 1 call_2 look {}",
    "call.ready 1",
    "model.finished 1 calls 1",
    "tool.started 1 call_1 pay run:1 0",
    "approval.asked 1 call_1 call_1 pay",
    "tool.started 1 call_2 look run:1 1",
    "approval.decided 1 call_2 allow policy",
    "tool.finished 1 call_2",
    "session.closed",
    "run.paused",
  ]);
  assertEquals(eventLines(events.slice(middle)), [
    "run.started run s true",
    "session.opened resume",
    "turn.started 1",
    "tool.started 1 call_1 pay run:2 0",
    "approval.decided 1 call_1 allow person",
    "tool.finished 1 call_1",
    "turn.finished 1",
    "turn.started 2",
    "model.started 2 scripted",
    "text.delta 2 0 Done.",
    "model.finished 2 stop 1",
    "turn.finished 2",
    "session.closed",
    "run.finished done Done. stop",
  ]);
  assertEquals(items.map(({ id }) => id), items.map((_, index) => index + 1));
  const { run } = paused;
  assertEquals([await first.ready, await second.ready, done.run], [
    { run, after: 0, usage: { input: 0, output: 0 } },
    { run, after: middle, usage: { input: 1, output: 1 }, before: "paused" },
    run,
  ]);
  assertEquals([done.usage, lines(done.messages)], [
    { input: 2, output: 2 },
    ["user Pay", "assistant I pay.", "call pay look", "ok Paid 5", "ok Seen", "assistant Done."],
  ]);
  model.done();
});

Deno.test("the session of a result continues the conversation, also of a run without a session and a store", async () => {
  const model = scripted("One.", "Two.", "Three.");
  const assistant = agent({ model });
  const { session } = await assistant.run("first").result;
  const second = await assistant.run({ prompt: "second", session }).result;
  await assistant.run({ prompt: "third", session: second.session }).result;
  const spoken = ["user first", "assistant One.", "user second", "assistant Two.", "user third"];
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [1, 3, 5].map((end) => spoken.slice(0, end)));
});

Deno.test("a run without a session that fails or is refused leaves what a named one leaves", async () => {
  for (const session of [undefined, "named"]) {
    const model = scripted({ error: new Error("down") }, "Two.");
    const assistant = agent({ model });
    const first = await assistant.run({ prompt: "first", ...(session && { session }), onError() {} }).result;
    await assistant.run({ prompt: "second", session: first.session }).result;
    assertEquals(lines(model.requests[1]?.messages ?? []), ["user first", "user second"]);
  }
});

Deno.test("a run without a session that is too large to keep ends as usual, and is reported", async () => {
  const reported: unknown[] = [];
  const assistant = agent({ model: scripted("x".repeat(17_000_000)) });
  const { status } = await assistant.run({ prompt: "Hi", onError: (error) => reported.push(error) }).result;
  assertEquals([status, reported.map((error) => error instanceof CapacityError)], ["done", [true]]);
});

Deno.test("an agent without a store keeps the last thousand runs without a session", async () => {
  const assistant = agent({ model: scripted(...Array.from({ length: 1_003 }, () => "Fine.")) });
  const sessions: string[] = [];
  for (let run = 0; run <= 1_000; run++) sessions.push((await assistant.run("first").result).session);
  const again = async (session: string | undefined) =>
    (await assistant.run({ prompt: "again", ...(session && { session }) }).result).messages.length;
  assertEquals([await again(sessions[0]), await again(sessions[1_000])], [2, 4]);
});

Deno.test("a run without a session writes nothing to a store, and its subagents keep nothing", async () => {
  const store = memory();
  const child = agent({ name: "child", model: scripted("Deep.") });
  const model = scripted({ calls: [["child", { prompt: "Go" }]] }, "Done.");
  const { status } = await agent({ model, tools: [asTool(child)] }).run({ prompt: "Hi", store }).result;
  assertEquals([status, await store.list()], ["done", []]);
});

Deno.test("a run without a session can be resumed by its generated session", async () => {
  const assistant = agent({ model: paying(), tools });
  const { session } = await assistant.run("Pay").result;
  const { status, text } = await assistant.resume({ session, answers: [approve] }).result;
  assertEquals([status, text], ["done", "Done."]);
});

Deno.test("answers to a session that is not paused are refused", async () => {
  const store = memory();
  const assistant = agent({ model: paying(), tools });
  const answer = (answers: readonly PersonAnswer[] = [approve], session = "s") =>
    assistant.resume({ session, store, answers }).result;
  assertEquals(await refusal(answer()), ["failed", "unknown", 'Cannot resume session "s": there is none', []]);
  const { messages } = await assistant.run({ prompt: "Pay", session: "s", store }).result;
  assertEquals(await refusal(answer([{ ...approve, callId: "call_2" }])), [
    "failed",
    "unasked",
    "Cannot answer call call_2: it is not asked, or was answered before; expected an answer to call call_1",
    messages,
  ]);
  assertEquals(await refusal(answer([{ callId: approve.callId, type: "deny" }, approve])), [
    "failed",
    "unasked",
    `Cannot answer call ${approve.callId}: it is answered twice`,
    messages,
  ]);
  assertEquals(await refusal(answer([approve], "t")), [
    "failed",
    "unknown",
    'Cannot resume session "t": there is none',
    [],
  ]);
  const done = await answer();
  assertEquals(done.status, "done");
  assertEquals(await refusal(answer()), [
    "failed",
    "not-paused",
    'Cannot resume session "s": it is not paused',
    done.messages,
  ]);
});

Deno.test("answers to a run that was followed by another, or has paused again, are refused", async () => {
  const store = memory();
  const assistant = agent({ model: paying(), tools });
  const { items, sink } = ledger();
  const named = { run: "r" }; // a server passes these options
  const { run } = await assistant.start({ prompt: "Pay", session: "s", store, ...named }, sink).result;
  const answer = (given: { readonly run?: string; readonly pausedAt?: number }) =>
    assistant.start({ session: "s", store, answers: [approve], ...given }, sink).result;
  for (const given of [{ run: "q" }, { pausedAt: items.length - 1 }]) {
    assertEquals((await refusal(answer(given))).slice(0, 3), [
      "failed",
      "not-paused",
      'Cannot resume session "s": it has continued since',
    ]);
  }
  assertEquals([run, (await answer({ ...named, pausedAt: items.length })).status], ["r", "done"]);
});

Deno.test("a new prompt to a paused session skips the open calls, and keeps the results", async () => {
  const store = memory();
  const model = scripted({ text: "I pay.", calls: [["pay", { sum: 5 }], ["look", {}]] }, "As you like.");
  const assistant = agent({ model, tools });
  await assistant.run({ prompt: "Pay", session: "s", store }).result;
  const { messages } = await assistant.run({ prompt: "Never mind", session: "s", store }).result;
  assertEquals(lines(messages), [
    "user Pay",
    "assistant I pay.",
    "call pay look",
    "skipped The conversation went on without an answer.",
    "ok Seen",
    "user Never mind",
    "assistant As you like.",
  ]);
  const late = await refusal(assistant.resume({ session: "s", store, answers: [approve] }).result);
  assertEquals(late.slice(0, 2), ["failed", "not-paused"]);
});

Deno.test("a run that has lost its session stops before its next effect", async () => {
  const ran: string[] = [];
  const note = tool({
    name: "note",
    description: "Notes",
    input: z.object({}),
    execute: async (_, { callId }) => {
      ran.push(callId);
      const kept = await store.load("s");
      if (kept) await store.save(kept); // another process takes the session
      return "noted";
    },
  });
  const store = memory();
  const model = scripted({ calls: [["note", {}]] }, { calls: [["note", {}]] }, "Done.");
  const { status, reason } = await agent({ model, tools: [note] }).run({ prompt: "Hi", session: "s", store }).result;
  assertEquals([status, reason, ran, model.left], ["aborted", "lost", ["call_1"], 2]);
});

Deno.test("a session has one run at a time", async () => {
  const store = memory();
  const go = Promise.withResolvers<void>();
  const assistant = agent({ model: scripted({ text: "One.", before: () => go.promise }, "Three.") });
  const first = assistant.run({ prompt: "1", session: "s", store });
  const { items, sink } = ledger();
  const second = assistant.start({ prompt: "2", session: "s", store }, sink);
  await assertRejects(() => second.ready, SessionError, 'Cannot run session "s": another run');
  assertEquals((await refusal(second.result)).slice(0, 2), ["failed", "busy"]);
  assertEquals(items, []);
  const resumed = assistant.resume({ session: "s", store, answers: [] });
  assertEquals((await refusal(resumed.result)).slice(0, 2), ["failed", "busy"]);
  assertEquals(await Array.fromAsync(resumed.events), []);
  go.resolve();
  assertEquals((await first.result).status, "done");
  const third = await assistant.run({ prompt: "3", session: "s", store }).result;
  assertEquals(lines(third.messages), ["user 1", "assistant One.", "user 3", "assistant Three."]);
});

/** Pauses once, before or after `next()`, and logs each time that it is entered. */
function asking(point: "session" | "prompt" | "turn" | "model" | "stop", when: "before" | "after", log: unknown[]) {
  const asked = state("asking.asked", () => false);
  async function hook<R>(ctx: Scope & { readonly resumed?: boolean }, next: () => Promise<R>): Promise<R> {
    log.push(ctx.resumed ?? "again");
    const answer = when === "after" ? await next() : undefined;
    if (!asked.get(ctx)) {
      asked.set(ctx, true);
      throw ctx.run.pause("Go on?");
    }
    return answer ?? await next();
  }
  return { name: "asking", [point]: hook } as Middleware; // this hook fits all of these points
}

/** Runs and resumes. Returns the questions, the turns that began, the number of requests, and the outcome. */
async function askedAt(point: Parameters<typeof asking>[0], when: "before" | "after") {
  const log: unknown[] = [];
  const model = scripted("One.", "Two.");
  const assistant = agent({ model, use: [asking(point, when, log)] });
  const first = assistant.run("Hi");
  const { status, questions, session } = await first.result;
  const second = assistant.resume({ session, answers: [] });
  const done = await second.result;
  const events: Event[] = [...await Array.fromAsync(first.events), ...await Array.fromAsync(second.events)];
  return {
    paused: [status, ...questions.flatMap(({ questions }) => questions)],
    entered: log,
    turns: events.flatMap((event) => event.type === "turn.started" ? [event.turn] : []),
    requests: model.requests.length,
    done: [done.status, done.text, ...lines(done.messages)],
  };
}

const asked = ["paused", "Go on?"];
const one = ["done", "One.", "user Hi", "assistant One."];

Deno.test("a run that pauses before next() enters that point again on resume", async () => {
  const rest = { paused: asked, requests: 1, done: one };
  assertEquals(await askedAt("session", "before"), { ...rest, entered: [false, true], turns: [1] });
  assertEquals(await askedAt("prompt", "before"), { ...rest, entered: [false, false], turns: [1] });
  assertEquals(await askedAt("turn", "before"), { ...rest, entered: [false, false], turns: [1, 1] });
  assertEquals(await askedAt("model", "before"), { ...rest, entered: ["again", "again"], turns: [1, 1] });
  assertEquals(await askedAt("stop", "before"), { ...rest, entered: [false, true], turns: [1] });
});

Deno.test("a run that pauses after the answer does not ask the model again", async () => {
  const rest = { paused: asked, requests: 1, turns: [1], done: one };
  assertEquals(await askedAt("session", "after"), { ...rest, entered: [false, true] });
  assertEquals(await askedAt("prompt", "after"), { ...rest, entered: [false, true] });
  assertEquals(await askedAt("turn", "after"), { ...rest, entered: [false, true], turns: [1, 1] });
  assertEquals(await askedAt("stop", "after"), { ...rest, entered: [false, true] });
});

Deno.test("a turn that pauses after next() leaves again with its result", async () => {
  const seen: unknown[] = [];
  const use: Middleware[] = [{
    name: "watch",
    turn: async (_, next) => {
      const { response, results } = await next();
      seen.push([textOf(response), ...results.map(textOf)]);
      return { response, results };
    },
  }, asking("turn", "after", [])];
  const model = scripted({ text: "I look.", calls: [["look", {}]] }, "");
  const assistant = agent({ model, tools, use });
  const { session } = await assistant.run("Hi").result;
  const { status, messages } = await assistant.resume({ session, answers: [] }).result;
  assertEquals([status, seen, lines(messages)], [
    "done",
    [["I look.", "Seen"], [""]],
    ["user Hi", "assistant I look.", "call look", "ok Seen"],
  ]);
});

Deno.test("an empty answer is the answer, also if the run pauses after it", async () => {
  for (const point of ["turn", "prompt", "session"] as const) {
    const model = scripted({ text: "I look.", calls: [["look", {}]] }, "");
    const late = state("late.asked", () => 0);
    const use: Middleware[] = [asking(point, "after", []), {
      name: "late",
      stop: (ctx, next) => late.update(ctx, (n) => n + 1) === 1 ? Promise.resolve(pause("Enough?")) : next(),
    }];
    const assistant = agent({ model, tools, use });
    let result = await assistant.run("Hi").result;
    for (let legs = 0; result.status === "paused" && legs < 5; legs++) {
      result = await assistant.resume({ session: result.session, answers: [] }).result;
    }
    assertEquals([result.status, result.text, model.left], ["done", "", 0], point);
  }
});

Deno.test("a run that reaches a limit after a pause returns the last text", async () => {
  const use = [asking("stop", "before", []), { stop: () => Promise.resolve(continueWith("Go on.")) }];
  const assistant = agent({ model: scripted("One."), use, limits: { turns: 1 } });
  const { session } = await assistant.run("Hi").result;
  const { status, text } = await assistant.resume({ session, answers: [] }).result;
  assertEquals([status, text], ["limit", "One."]);
});

Deno.test("a run that was ended does not pause", async () => {
  const use: Middleware[] = [asking("session", "after", []), { turn: (ctx) => Promise.reject(ctx.run.end("enough")) }];
  const { status, reason, questions } = await agent({ model: scripted(), use }).run("Hi").result;
  assertEquals([status, reason, questions], ["cancelled", "enough", []]);
});

Deno.test("a stop hook may pause, and runs again on resume", async () => {
  const resumed: boolean[] = [];
  const model = scripted("One.");
  const use: Middleware[] = [{
    stop: async (ctx, next) => {
      resumed.push(ctx.resumed);
      return ctx.resumed ? await next() : pause("Enough?");
    },
  }];
  const assistant = agent({ model, use });
  const { session, questions } = await assistant.run("Hi").result;
  assertEquals(withoutSchemas(questions), [{ questions: ["Enough?"] }]);
  const done = await assistant.resume({ session, answers: [] }).result;
  assertEquals([done.status, ...lines(done.messages), resumed], ["done", "user Hi", "assistant One.", [false, true]]);
});

Deno.test("a stop hook may pause after an empty answer", async () => {
  const model = scripted("");
  const log: unknown[] = [];
  const assistant = agent({ model, use: [asking("stop", "before", log)] });
  const { session } = await assistant.run("Hi").result;
  const done = await assistant.resume({ session, answers: [] }).result;
  assertEquals([done.status, done.text, ...lines(done.messages), log], ["done", "", "user Hi", [false, true]]);
});

Deno.test("a prompt that was not accepted before a pause is accepted on resume, as hooks change it", async () => {
  const change: Middleware = {
    name: "change",
    prompt: (ctx, next) => next({ prompt: user(`${lines([ctx.prompt]).join()}!`), context: ["It is noon."] }),
  };
  const model = scripted("One.");
  const assistant = agent({ model, use: [change, asking("prompt", "before", [])] });
  const first = assistant.run({ messages: [user("Earlier"), user("Hi")] });
  const paused = await first.result;
  assertEquals(lines(paused.messages), []);
  const second = assistant.resume({ session: paused.session, answers: [] });
  assertEquals(eventLines(await eventsOfRun(first)), [
    "run.started run session false",
    "session.opened new",
    "session.closed",
    "run.paused",
  ]);
  assertEquals(eventLines(await eventsOfRun(second)).slice(0, 3), [
    "run.started run session true",
    "session.opened resume",
    "prompt.accepted",
  ]);
  const transcript = ["user Earlier", "user user Hi!", "prompt It is noon."];
  assertEquals(lines((await second.result).messages), [...transcript, "assistant One."]);
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [transcript]);
});

Deno.test("an unanswered prompt of the session is answered, and the result excludes earlier texts", async () => {
  const store = memory();
  const options = { session: "s", store };
  await agent({ model: scripted("Hello!") }).run({ prompt: "Hi", ...options }).result;
  const model = scripted("One.");
  const assistant = agent({ model, use: [asking("prompt", "before", [])] });
  const paused = await assistant.run({ prompt: "Count", ...options }).result;
  assertEquals([paused.status, paused.text, ...lines(paused.messages)], ["paused", "", "user Hi", "assistant Hello!"]);
  const done = await assistant.resume({ answers: [], ...options }).result;
  assertEquals([done.status, done.text, ...lines(done.messages).slice(2)], [
    "done",
    "One.",
    "user Count",
    "assistant One.",
  ]);
});

Deno.test("a prompt that was never accepted is dropped when the conversation continues", async () => {
  const assistant = agent({ model: scripted("One."), use: [asking("prompt", "before", [])] });
  const { session } = await assistant.run("Hi").result;
  const { session: pausedAgain } = await assistant.run({ prompt: "Hello", session }).result;
  const { messages } = await assistant.resume({ session: pausedAgain, answers: [] }).result;
  assertEquals(lines(messages), ["user Hello", "assistant One."]);
});

Deno.test("a run that pauses twice accepts its prompt once", async () => {
  const once = asking("prompt", "before", []);
  const later = state("later.asked", () => false);
  const twice: Middleware = {
    turn: (ctx, next) => {
      if (later.get(ctx)) return next();
      later.set(ctx, true);
      throw ctx.run.pause("And now?");
    },
  };
  const assistant = agent({ model: scripted("One."), use: [once, twice] });
  const { session } = await assistant.run("Hi").result;
  const second = await assistant.resume({ session, answers: [] }).result;
  assertEquals([second.status, withoutSchemas(second.questions)], ["paused", [{ questions: ["And now?"] }]]);
  const third = await assistant.resume({ session, answers: [] }).result;
  assertEquals([third.status, ...lines(third.messages)], ["done", "user Hi", "assistant One."]);
});

Deno.test("an answer is kept if the run pauses again before its call entered", async () => {
  const pausedAgain = state("again.asked", () => false);
  const use: Middleware[] = [{
    turn: (ctx, next) => {
      if (!ctx.resumed || pausedAgain.get(ctx)) return next();
      pausedAgain.set(ctx, true);
      throw ctx.run.pause("Sure?");
    },
  }];
  const assistant = agent({ model: paying(), tools, use });
  const { session } = await assistant.run("Pay").result;
  const second = await assistant.resume({ session, answers: [approve] }).result;
  assertEquals([second.status, withoutSchemas(second.questions)], ["paused", [{ questions: ["Sure?"] }]]);
  const third = await assistant.resume({ session, answers: [] }).result;
  assertEquals([third.status, ...lines(third.messages).slice(2)], [
    "done",
    "call pay look",
    "ok Paid 5",
    "ok Seen",
    "assistant Done.",
  ]);
});

Deno.test("a resumed run enters session, prompt and turn again, without their changes, and not model", async () => {
  const log: unknown[] = [];
  const use: Middleware[] = [{
    session: (ctx, next) => {
      log.push(["session", ctx.source, ctx.resumed]);
      return next({ context: ["from session"] });
    },
    prompt: (ctx, next) => {
      log.push(["prompt", lines([ctx.prompt]), ctx.resumed]);
      return next({ prompt: user("Changed"), context: ["from prompt"] });
    },
    turn: (ctx, next) => {
      log.push(["turn", ctx.index, ctx.resumed]);
      return next({ context: [`from turn ${ctx.index}`] });
    },
    model: (ctx, next) => {
      log.push(["model", ...lines(ctx.request.messages)]);
      return next();
    },
    tool: (ctx, next) => {
      log.push(["tool", ctx.call.id, ctx.batchId.endsWith(":1"), ctx.resumed]);
      return next();
    },
  }];
  const assistant = agent({ model: paying(), tools, use });
  const { session } = await assistant.run("Pay").result;
  const transcript = ["session from session", "user Changed", "prompt from prompt"];
  assertEquals(log.splice(0), [
    ["session", "new", false],
    ["prompt", ["user Pay"], false],
    ["turn", 1, false],
    ["model", ...transcript, "turn from turn 1"],
    ["tool", "call_1", true, false],
    ["tool", "call_2", true, false],
  ]);
  const { messages } = await assistant.resume({ session, answers: [approve] }).result;
  const batch = ["assistant I pay.", "call pay look", "ok Paid 5", "ok Seen"];
  assertEquals(log, [
    ["session", "resume", true],
    ["prompt", ["user Changed"], true],
    ["turn", 1, true],
    ["tool", "call_1", false, true],
    ["turn", 2, false],
    ["model", ...transcript, ...batch, "turn from turn 2"],
  ]);
  assertEquals(lines(messages), [...transcript, ...batch, "assistant Done."]);
});

Deno.test("the state and the limits of a run continue when it is resumed", async () => {
  const count = state("count", () => 0);
  const seen: unknown[] = [];
  const use: Middleware[] = [{
    turn: async (ctx, next) => {
      seen.push([count.update(ctx, (n) => n + 1), ctx.run.used.turns, ctx.run.used.calls]);
      return await next();
    },
  }];
  const model = scripted({ calls: [["pay", { sum: 5 }]] }, { calls: [["look", {}], ["look", {}]] }, "Done.");
  const assistant = agent({ model, tools, use, limits: { calls: 2, turns: 3 } });
  const { session } = await assistant.run("Pay").result;
  const { status, messages } = await assistant.resume({ session, answers: [approve] }).result;
  assertEquals(seen, [[1, 1, 0], [2, 1, 1], [3, 2, 1], [4, 3, 3]]);
  assertEquals([status, ...lines(messages).slice(2)], [
    "done",
    "ok Paid 5",
    "call look look",
    "ok Seen",
    "skipped Not run: this run may make 2 calls.",
    "assistant Done.",
  ]);
});

Deno.test("a rollback also removes the messages from before the pause", async () => {
  const store = memory();
  const use: Middleware[] = [{ stop: (ctx) => Promise.reject(ctx.run.end("undo", { rollback: true })) }];
  await agent({ model: scripted("Hello!") }).run({ prompt: "Hi", session: "s", store }).result;
  const assistant = agent({ model: paying(), tools, use });
  await assistant.run({ prompt: "Pay", session: "s", store }).result;
  const { messages } = await assistant.resume({ session: "s", store, answers: [approve] }).result;
  assertEquals(lines(messages), ["user Hi", "assistant Hello!"]);
});

Deno.test("a resume that fails or is stopped before its calls enter keeps their results", async () => {
  const kept = ["user Pay", "assistant I pay.", "call pay look", "aborted Stopped before it was done.", "ok Seen"];
  const failing: Middleware = {
    session: (ctx, next) => ctx.resumed ? Promise.reject(new Error("down")) : next(),
  };
  const first = agent({ model: paying(), tools, use: [failing] });
  const { session } = await first.run("Pay").result;
  const failed = await first.resume({ session, answers: [approve] }).result;
  assertEquals([failed.status, lines(failed.messages)], ["failed", kept]);

  const second = agent({ model: paying(), tools });
  const paused = await second.run("Pay").result;
  const aborted = await second.resume({ session: paused.session, answers: [approve], signal: AbortSignal.abort() })
    .result;
  assertEquals([aborted.status, lines(aborted.messages)], ["aborted", kept]);
});

Deno.test("a resume that is refused leaves the run paused", async () => {
  let open = false;
  const gate: Middleware = {
    session: (ctx, next) => ctx.resumed && !open ? Promise.resolve(refused("closed")) : next(),
  };
  const assistant = agent({ model: paying(), tools, use: [gate] });
  const { session } = await assistant.run("Pay").result;
  const no = await assistant.resume({ session, answers: [approve] }).result;
  assertEquals([no.status, no.reason], ["cancelled", "closed"]);
  open = true;
  const yes = await assistant.resume({ session, answers: [approve] }).result;
  assertEquals([yes.status, yes.text], ["done", "Done."]);
});

Deno.test("a refused session does not begin", async () => {
  const store = memory();
  const model = scripted();
  const assistant = agent({ model, use: [{ session: () => Promise.resolve(refused("closed")) }] });
  const run = assistant.run({ prompt: "Hi", session: "s", store });
  assertEquals(eventLines(await eventsOfRun(run)), [
    "run.started run s false",
    "session.opened new",
    "session.closed",
    "run.finished cancelled  closed",
  ]);
  const { status, reason, run: id, session, messages } = await run.result;
  assertEquals([status, reason, id === "", session, messages], ["cancelled", "closed", false, "s", []]);
  assertEquals((await store.load("s"))?.messages, []);
});

Deno.test("a cancelled prompt is not stored, before or after its answer", async () => {
  const store = memory();
  const before: Middleware = { prompt: () => Promise.resolve(cancelled("not now")) };
  const after: Middleware = { prompt: (_, next) => next().then(() => cancelled("not that")) };
  const kept: Middleware = { session: (_, next) => next({ context: ["Be kind."] }) };
  const run = (prompt: string, ...use: Middleware[]) =>
    agent({ model: scripted("Hello!"), use }).run({ prompt, session: "s", store }).result;
  const results = [await run("1", before), await run("2", kept, after), await run("3", kept), await run("4", after)];
  assertEquals(results.map(({ status, reason, text, messages }) => [status, reason, text, ...lines(messages)]), [
    ["cancelled", "not now", ""],
    ["cancelled", "not that", ""],
    ["done", undefined, "Hello!", "session Be kind.", "user 3", "assistant Hello!"],
    ["cancelled", "not that", "", "session Be kind.", "user 3", "assistant Hello!"],
  ]);
});

Deno.test("context is inserted at its point, and stored if that point stores it", async () => {
  const look = tool({
    name: "look",
    description: "Looks",
    input: z.object({ at: z.string() }),
    execute: ({ at }) => ({ ...text(`Seen ${at}`), context: [`${at} is near`, `${at} is far`] }),
  });
  const use: Middleware[] = [
    {
      session: (ctx, next) => next({ context: [...ctx.context, "s1"] }),
      prompt: (ctx, next) => next({ context: [...ctx.context, "p1"] }),
      turn: (ctx, next) => next({ context: [...ctx.context, `t${ctx.index}`] }),
    },
    {
      session: (ctx, next) => next({ context: [...ctx.context, "s2"] }),
      prompt: (ctx, next) => next({ context: [...ctx.context, "p2"] }),
      turn: (ctx, next) => next({ context: [...ctx.context, "t+"] }),
    },
  ];
  const store = memory();
  const model = scripted({ calls: [["look", { at: "a" }], ["look", { at: "b" }]] }, "Done.", "More.");
  const assistant = agent({ model, tools: [look], use });
  const { messages } = await assistant.run({ prompt: "Look", session: "s", store }).result;
  const first = ["session s1s2", "user Look", "prompt p1p2"];
  const second = [...first, "call look look", "ok Seen a", "ok Seen b", "context a is neara is farb is nearb is far"];
  assertEquals(lines(messages), [...second, "assistant Done."]);
  const next = await assistant.run({ prompt: "More", session: "s", store }).result;
  const third = [...second, "assistant Done.", "user More", "prompt p1p2"];
  assertEquals(lines(next.messages), [...third, "assistant More."]);
  assertEquals(model.requests.map(({ messages }) => lines(messages)), [
    [...first, "turn t1t+"],
    [...second, "turn t2t+"],
    [...third, "turn t1t+"],
  ]);
});

Deno.test("a session hook may replace the model, the instructions, the tools and the limits, each alone", async () => {
  const [pay, look] = tools;
  const other = scripted({ calls: [["look", {}], ["pay", { sum: 5 }]] }, "Other.");
  const seen: unknown[] = [];
  const use: Middleware[] = [
    {
      session: (ctx, next) => {
        seen.push(ctx.settings.instructions, ctx.settings.tools.length, ctx.settings.limits === defaultLimits);
        return next({ settings: { model: { ...other, id: "other" }, limits: { ...ctx.settings.limits, calls: 1 } } });
      },
    },
    {
      session: (ctx, next) => {
        seen.push(ctx.settings.model.id, ctx.settings.limits.calls);
        return next({ settings: { instructions: "Be brief.", tools: look ? [look] : [] } });
      },
    },
    {
      prompt: (ctx, next) => {
        seen.push(ctx.run.limits.calls);
        return next();
      },
    },
  ];
  const assistant = agent({ model: scripted(), instructions: "Be long.", tools: pay && look ? [pay, look] : [], use });
  const { messages, text } = await assistant.run("Hi").result;
  assertEquals(seen, ["Be long.", 2, false, "other", 1, 1]);
  assertEquals(text, "Other.");
  assertEquals(other.requests.map(({ instructions, tools }) => [instructions, tools.map(({ name }) => name)]), [
    ["Be brief.", ["look"]],
    ["Be brief.", ["look"]],
  ]);
  assertEquals(lines(messages).slice(1), [
    "call look pay",
    "ok Seen",
    "skipped Not run: this run may make 1 calls.",
    "assistant Other.",
  ]);
});

Deno.test("a tool that a session hook adds replaces the tool of the same name", async () => {
  const mine = tool({ name: "look", description: "Looks again", input: z.object({}), execute: () => "Mine" });
  const use: Middleware[] = [{
    session: (ctx, next) => next({ settings: { tools: [...ctx.settings.tools, mine] } }),
  }];
  const model = scripted({ calls: [["look", {}]] }, "Done.");
  const { messages } = await agent({ model, tools, use }).run("Look").result;
  assertEquals(lines(messages)[2], "ok Mine");
  assertEquals(model.requests[0]?.tools.map(({ description }) => description), ["Pays", "Looks again"]);
});

Deno.test("the history that a caller passes continues in a stored session", async () => {
  const store = memory();
  const history: readonly Message[] = [user("Hi"), { role: "assistant", parts: [{ type: "text", text: "Hello!" }] }];
  const assistant = agent({ model: scripted("One.", "Two.") });
  await assistant.run({ messages: [...history, user("1")], session: "s", store }).result;
  const { messages } = await assistant.run({ prompt: "2", session: "s", store }).result;
  const all = ["user Hi", "assistant Hello!", "user 1", "assistant One.", "user 2", "assistant Two."];
  assertEquals(lines(messages), all);
});

Deno.test("memory() keeps the newest sessions, at most `max`", async () => {
  const store = memory({ max: 2 });
  const session = { version: 0, messages: [user("Hi")] };
  assertEquals(await store.load("a"), undefined);
  assertEquals(await store.save({ id: "a", ...session }), 1);
  assertEquals(await store.save({ id: "a", ...session }), undefined);
  assertEquals(await store.save({ id: "b", ...session }), 1);
  assertEquals(await store.save({ id: "a", ...session, version: 1 }), 2);
  assertEquals(await store.save({ id: "c", ...session }), 1);
  assertEquals((await Promise.all(["a", "b", "c"].map((id) => store.load(id)))).map((kept) => kept?.version), [
    2,
    undefined,
    1,
  ]);
  await store.delete("a");
  assertEquals(await store.load("a"), undefined);
  assertEquals(await store.save({ id: "a", ...session, version: 2 }), undefined);
});

Deno.test("the prompt is saved before the model is asked, and results before it is asked again", async () => {
  const store = memory();
  const kept: unknown[] = [];
  const look = async () => {
    const { run, messages = [] } = await store.load("s") ?? {};
    const prompt = run?.position.at === "prompt" ? run.position.messages : [];
    kept.push([run ? "running" : undefined, ...lines([...messages, ...prompt])]);
  };
  const model = scripted({ calls: [["look", {}]], before: look }, { text: "Done.", before: look });
  await agent({ model, tools }).run({ prompt: "Look", session: "s", store }).result;
  await look();
  const all = ["user Look", "call look", "ok Seen"];
  assertEquals(kept, [["running", "user Look"], ["running", ...all], [undefined, ...all, "assistant Done."]]);
});

Deno.test("a session that cannot be loaded or saved fails the run", async () => {
  using time = new FakeTime();
  const down = () => Promise.reject(new Error("store is down"));
  const empty = memory();
  const closed = { ...empty, journal: { ...empty.journal, open: down } };
  const failing = agent({ model: scripted() }).run({ prompt: "Hi", session: "s", store: closed });
  const failed = await advanceUntilSettled(time, failing.result);
  assertEquals([failed.status, failed.error instanceof Error && failed.error.message], ["failed", "store is down"]);
  assertEquals(await Array.fromAsync(failing.events), []);

  const kept = memory();
  let broken = false;
  const store: Store = { ...kept, journal: saving(kept, (_, save) => broken ? down() : save()) };
  const reported: unknown[] = [];
  const use: Middleware[] = [{
    stop: (_, next) => {
      broken = true;
      return next();
    },
  }];
  const run = agent({ model: scripted("Hello!"), use })
    .run({
      prompt: "Hi",
      session: "s",
      store,
      onError: (error) => reported.push(error instanceof Error && error.message),
    });
  const events = await advanceUntilSettled(time, eventsOfRun(run));
  assertEquals(events.slice(-3), [
    { type: "session.closed" },
    { type: "warning", code: "session.unsaved", message: "The session could not be saved.", error: "uuid" },
    { type: "run.finished", status: "done", text: "Hello!", finish: "stop", usage: { input: 1, output: 1 } },
  ]);
  assertEquals([(await run.result).status, reported], ["done", ["store is down"]]);
});

Deno.test("a run whose pause cannot be saved fails, because no answer would find its question", async () => {
  using time = new FakeTime();
  const kept = memory();
  const store: Store = {
    ...kept,
    journal: saving(
      kept,
      (session, save) => session.run?.exit ? Promise.reject(new Error("The disk is full")) : save(),
    ),
  };
  const use: Middleware[] = [{ stop: (ctx) => Promise.reject(ctx.run.pause("Go on?")) }];
  const reported: unknown[] = [];
  const run = agent({ model: scripted("Hello!"), use })
    .run({ prompt: "Hi", session: "s", store, onError: (error) => reported.push(error) });
  const events = await advanceUntilSettled(time, eventsOfRun(run));
  const { status, reason, error, questions, messages } = await run.result;
  assertEquals([status, reason, questions, reported], ["failed", "failure", [], [error]]);
  assertEquals(lines(messages), ["user Hi", "assistant Hello!"]);
  assertEquals(eventLines(events).slice(-2), [
    "warning session.unsaved The session could not be saved. uuid",
    "run.failed uuid The run cannot pause: its session could not be saved. internal",
  ]);
  assertEquals((await kept.load("s"))?.run, undefined);
});

Deno.test("a session that another process took is reported as unsaved", async () => {
  const store = memory();
  const use: Middleware[] = [{
    stop: async (_, next) => {
      const session = await store.load("s");
      if (session) await store.save({ ...session, messages: [user("Mine")] });
      return await next();
    },
  }];
  const run = agent({ model: scripted("Hello!"), use }).run({ prompt: "Hi", session: "s", store });
  assertEquals(eventLines(await eventsOfRun(run)).slice(-3), [
    "session.closed",
    "warning session.unsaved The session was taken by another process.",
    "run.finished done Hello! stop",
  ]);
  assertEquals(lines((await store.load("s"))?.messages ?? []), ["user Mine"]);
});

Deno.test("a hook that ignores the end of its run does not hold the session", async () => {
  using time = new FakeTime();
  const store = memory();
  const late = Promise.withResolvers<void>();
  const use: Middleware[] = [{
    prompt: async (ctx, next) => {
      await late.promise;
      ctx.emit({ type: "notice", text: "late" });
      return await next();
    },
  }];
  const model = scripted("Hello!");
  const run = agent({ model, use, limits: { grace: 100 } }).run({ prompt: "Hi", session: "s", store });
  await time.runMicrotasks();
  run.stop();
  await time.tickAsync(300);
  assertEquals(eventLines(await eventsOfRun(run)), [
    "run.started run s false",
    "session.opened new",
    "warning hook.abandoned A hook did not stop when its signal aborted.",
    "session.closed",
    "run.aborted stop ",
  ]);
  const { status, messages } = await run.result;
  late.resolve();
  await time.runMicrotasks();
  assertEquals([status, messages, model.requests], ["aborted", [], []]);
  assertEquals((await store.load("s"))?.run, undefined);
});

Deno.test("no timer has a negative time after a save that took most of the lease, because runtimes warn of it", async () => {
  using time = new FakeTime();
  const { journal } = memory();
  const slow = durable({
    ...journal,
    async append(key, append) {
      await new Promise((resolve) => setTimeout(resolve, 25_000)); // a lease is 30 seconds
      return await journal.append(key, append);
    },
  });
  const { setTimeout } = globalThis;
  const negative: number[] = [];
  using _ = stub(globalThis, "setTimeout", (run: () => void, ms = 0) => {
    if (ms < 0) negative.push(ms);
    return setTimeout(run, ms);
  });
  const run = agent({ model: scripted("Hello.") }).run({ prompt: "Hi", session: "s", store: slow });
  const { status } = await advanceUntilSettled(time, run.result);
  assertEquals([status, negative], ["done", []]);
});

Deno.test("a run that is stopped while a hook holds its pause does not save it again and again", async () => {
  const { journal } = memory();
  const saved: (string | undefined)[] = [];
  const store = durable({
    ...journal,
    append(key, append) {
      saved.push(append.change?.state);
      return journal.append(key, append);
    },
  });
  const [paused, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const pay = tool({ name: "pay", description: "Pays", input: z.object({}), ask: true, execute: () => "Paid" });
  const look = tool({ name: "look", description: "Looks", input: z.object({}), execute: () => "Seen" });
  const run = agent({
    model: scripted({ calls: [["look", {}], ["pay", {}]] }),
    tools: [look, pay],
    use: [{
      name: "slow",
      async session(_, next) {
        const result = await next();
        paused.resolve();
        await released.promise;
        return result;
      },
    }],
  }).run({ prompt: "Pay", session: "s", store });
  await paused.promise;
  for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setTimeout(resolve));
  const before = saved.splice(0);
  run.stop("enough");
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve));
  released.resolve();
  const { status } = await run.result;
  assertEquals(before.filter((state) => state !== "running"), []); // a pause is saved with its last event
  assertEquals([status, saved], ["paused", ["running", "paused"]]);
});
