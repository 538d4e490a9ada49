import { assert, assertEquals, assertRejects } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";
import {
  agent,
  CapacityError,
  memory,
  type Middleware,
  type Model,
  serve,
  type ServeOptions,
  type Session,
  SessionError,
  user,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { journalLaws } from "@jizai/jizai/testing";
import { type Append, journalKey, type RunState } from "../../src/core/journal.ts";
import { added, begun } from "../support/begun_journal.ts";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";

Deno.test("memory() keeps the laws of journals", async () => {
  using time = new FakeTime();
  await journalLaws((options) => memory(options).journal, { pass: (ms) => time.tick(ms) });
});

Deno.test("memory() deletes the session that was saved longest ago if there are too many", async () => {
  const store = memory({ max: 2 });
  for (const id of ["a", "b"]) await store.save({ id, version: 0, messages: [user(id)] });
  await store.save({ id: "a", version: 1, messages: [user("again")] });
  await store.save({ id: "c", version: 0, messages: [] });
  assertEquals(await store.list(), ["a", "c"]);
});

Deno.test("memory() keeps a session as it was if the new one is not JSON", async () => {
  const store = memory();
  await store.save({ id: "a", version: 0, messages: [] });
  const message = { role: "user", parts: [{ type: "text", text: "Hi" }], size: 1n } as const;
  await assertRejects(() => store.save({ id: "a", version: 1, messages: [message] }), TypeError);
  assertEquals(await store.load("a"), { id: "a", version: 1, messages: [] });
});

Deno.test("memory() deletes no active run, however many there are", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const held: Model = {
    id: "held",
    async *stream() {
      await released;
      yield [{ type: "text", text: "Hello!" }, { type: "finish", reason: "stop" }];
    },
  };
  const app = serve(agent({ model: held }), { store: memory({ max: 2 }) });
  const runs = Array.from({ length: 5 }, () => post(app, "/runs", { prompt: "Hi" }));
  const streams = await Promise.all(runs); // all have begun, and none has ended
  release();
  const ends = await Promise.all(streams.map(async (stream) => (await eventsOf(stream)).at(-1)?.type));
  assertEquals(ends, Array(5).fill("run.finished"));
});

const text = "x".repeat(10_000);

/** A session of a bit more than 20,000 bytes, with a paused run or without a run. */
async function storedSession(paused: boolean): Promise<Session> {
  const store = memory();
  const hold: Middleware = {
    name: "hold",
    prompt: (ctx, next) => paused ? Promise.reject(ctx.run.pause("Go on?")) : next(),
  };
  await agent({ model: scripted("Hello!"), use: [hold] }).run({ prompt: text, session: "s", store }).result;
  const session = await store.load("s");
  assert(session);
  return { ...session, version: 0 };
}

Deno.test("memory() is bounded in bytes: it deletes the oldest sessions without a run, and never a paused one", async () => {
  const store = memory({ maxBytes: 100_000, maxOwnerBytes: Infinity });
  const [ended, paused] = [await storedSession(false), await storedSession(true)];
  await store.save({ ...paused, id: "paused" });
  for (let number = 0; number < 50; number++) await store.save({ ...ended, id: `ended${number}` });
  assertEquals(await store.list(), ["ended47", "ended48", "ended49", "paused"]);
  for (const id of ["b", "c", "d"]) await store.save({ ...paused, id });
  assertEquals(await store.list(), ["b", "c", "d", "paused"]);
  await assertRejects(() => store.save({ ...paused, id: "e" }), Error, "Cannot store more in memory: it is full");
  await assertRejects(() => store.save({ ...ended, id: "e" }), Error, "Cannot store more in memory: it is full");
  assertEquals(await store.list(), ["b", "c", "d", "paused"]);
});

Deno.test("memory() keeps a session as it was if a longer one does not fit", async () => {
  const store = memory({ maxBytes: 100_000 });
  const session = await storedSession(true);
  await store.save(session);
  const long = { ...session, version: 1, messages: [...session.messages, user("y".repeat(50_000))] };
  await assertRejects(() => store.save(long), Error, "Cannot store more in memory: it is full");
  assertEquals(await store.load("s"), { ...session, version: 1 });
  assertEquals(await store.save({ ...session, version: 1 }), 2);
});

Deno.test("memory() lets the next run have a session whose last save does not fit, at an end and at a pause", async () => {
  const pausing: Middleware = {
    name: "pausing",
    stop: (ctx) => Promise.reject(ctx.run.pause("Go on?")),
  };
  const cases = [[[], "run.finished"], [[pausing], "run.paused"]] as const;
  for (const [use, last] of cases) {
    const errors: string[] = [];
    const app = serve(agent({ model: scripted(text, "Short."), use }), {
      store: memory({ maxBytes: 20_000 }),
      session: () => "s",
      onError: (error) => void errors.push(String(error)),
    });
    const long = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    assertEquals([long.at(-1)?.type, first("warning", long).code], ["run.failed", "session.unsaved"]);
    assertEquals(errors.map((error) => error.replace(/takes \d+/, "takes N")), [
      "CapacityError: Cannot store more in memory: it is full; this alone takes N bytes of at most 20000",
    ]);
    assertEquals(await (await app.request("/sessions/s")).json(), { id: "s", messages: [] });
    const next = await eventsOf(post(app, "/runs", { prompt: "Again" }));
    assertEquals([next.at(-1)?.type, next.filter(({ type }) => type === "warning")], [last, []]);
    const { messages } = await (await app.request("/sessions/s")).json();
    assertEquals(lines(messages), ["user Again", "assistant Short."]);
  }
});

Deno.test("memory() counts the same bytes for a session that grows with each save, that is shortened, and that is saved at once", async () => {
  const bounds = { maxBytes: 500_000, maxOwnerBytes: Infinity };
  const session = await storedSession(true);
  const store = memory(bounds);
  let [version, messages] = [await store.save(session), session.messages];
  const grow = async () => {
    for (let count = 0; count < 100 && version !== undefined; count++) {
      const longer = [...messages, user("y".repeat(10_000))];
      version = await store.save({ ...session, version, messages: longer });
      messages = longer;
    }
  };
  for (const start of [messages, [user("Other"), ...session.messages]]) {
    await assertRejects(grow, Error, "it is full");
    assert(messages.length > session.messages.length + 10);
    await memory(bounds).save({ ...session, messages });
    const atOnce = memory(bounds).save({ ...session, messages: [...messages, user("y".repeat(10_000))] });
    await assertRejects(() => atOnce, Error, "it is full");
    messages = start;
    version = await store.save({ ...session, version: version ?? 0, messages });
    assertEquals((await store.load("s"))?.messages, messages);
  }
});

Deno.test("memory() bounds the bytes of each owner, and lets no owner delete sessions of another", async () => {
  const store = memory({ maxBytes: 200_000, maxOwnerBytes: 50_000 });
  const [ended, paused] = [await storedSession(false), await storedSession(true)];
  await store.save({ ...ended, id: "ada", owner: "ada" });
  for (let number = 0; number < 20; number++) await store.save({ ...ended, id: `bob${number}`, owner: "bob" });
  const ofBob = { owner: "bob" };
  assertEquals([await store.list({ owner: "ada" }), await store.list(ofBob)], [["ada"], ["bob18", "bob19"]]);
  for (const id of ["p1", "p2"]) await store.save({ ...paused, id, owner: "bob" });
  await assertRejects(() => store.save({ ...ended, id: "bob", owner: "bob" }), Error, "it is full");
  assertEquals([await store.list({ owner: "ada" }), await store.list(ofBob)], [["ada"], ["p1", "p2"]]);
});

Deno.test("memory() deletes nothing for a session that does not fit", async () => {
  const store = memory({ maxBytes: 100_000, maxOwnerBytes: 60_000 });
  const [ended, paused] = [await storedSession(false), await storedSession(true)];
  for (const id of ["p1", "p2"]) await store.save({ ...paused, id, owner: "ada" });
  await store.save({ ...paused, id: "p3" });
  await store.save({ ...ended, id: "b1", owner: "bob" });
  const long = { ...ended, id: "b2", owner: "bob", messages: [user("y".repeat(25_000))] };
  await assertRejects(() => store.save(long), Error, "it is full");
  const listed = () => Promise.all(["ada", "bob", undefined].map((owner) => store.list({ owner })));
  assertEquals(await listed(), [["p1", "p2"], ["b1"], ["p3"]]);
  await store.save({ ...long, messages: [user("y".repeat(15_000))] });
  assertEquals(await listed(), [["p1", "p2"], ["b2"], ["p3"]]);
});

/** Returns an append that begins a run, with one event. */
function beginning(session: string, state: RunState, line: string): Append {
  const change = { run: 1, state, base: 1, waiting: 0, head: "{}", last: 0, entries: [] };
  return { ...begun(session), change, events: { first: 1, lines: [line] } };
}

Deno.test("memory() is bounded in bytes: it deletes the oldest ended runs, no paused run, and of a live run the first events", async () => {
  const { journal } = memory({ maxBytes: 100_020, maxOwnerBytes: Infinity });
  await journal.append("live", beginning("live", "running", text));
  await journal.append("paused", beginning("paused", "paused", text));
  for (let number = 0; number < 20; number++) {
    await journal.append(`ended${number}`, beginning(`ended${number}`, "over", text));
  }
  const lasts = async (...keys: readonly string[]) =>
    await Promise.all(keys.map(async (key) => (await journal.read(key, 1, 0))?.last));
  assertEquals(await lasts("live", "paused", "ended16", "ended17", "ended19"), [1, 1, undefined, 1, 1]);
  const add = (n: number, first: number, ...lines: readonly string[]) =>
    journal.append("live", { ...added(n, []), events: { first, lines } });
  await add(2, 2, text, text, text);
  assertEquals(await lasts("live", "paused", "ended19"), [4, 1, undefined]);
  await add(3, 5, text, "end");
  const rest = { last: 6, over: false, session: "live", owner: undefined };
  const kept = { first: 2, lines: [text, text, text, text, "end"], ...rest };
  assertEquals([await lasts("live", "paused"), await journal.read("live", 1, 0)], [[6, 1], kept]);
  await assertRejects(() => journal.append("new", beginning("new", "running", text)), CapacityError, "it is full");
  assertEquals(await lasts("live", "paused", "new"), [6, 1, undefined]);
  await assertRejects(() => add(4, 7, text.repeat(5), "end"), CapacityError, "it is full");
  assertEquals(await journal.read("live", 1, 0), kept);
});

Deno.test("serve() answers 503 for a new prompt if its store is full, and keeps paused runs and keys", async () => {
  const options: readonly ServeOptions[] = [
    { store: memory({ maxBytes: 60_000, maxOwnerBytes: Infinity }) },
    { store: memory({ maxBytes: 100_000, maxOwnerBytes: 60_000 }) },
  ];
  for (const each of options) {
    const pausing: Middleware = {
      name: "pausing",
      prompt: (ctx, next) => ctx.resumed ? next() : Promise.reject(ctx.run.pause("Go on?")),
    };
    const model = scripted(...Array.from({ length: 9 }, () => "Hello!"));
    const app = serve(agent({ model, use: [pausing] }), each);
    const paused = await eventsOf(post(app, "/runs", { prompt: text }));
    const { session } = first("run.started", paused);
    const statuses: number[] = [];
    while (statuses.length < 9 && statuses.at(-1) !== 503) {
      const response = await post(app, "/runs", { prompt: text });
      await response.text();
      statuses.push(response.status);
    }
    assertEquals([statuses[0], statuses.at(-1)], [200, 503]);
    assertEquals((await app.request(`/sessions/${session}`)).status, 200);
  }
});

Deno.test("memory() deletes a session that expires, but not while its run is in progress", async () => {
  using time = new FakeTime();
  const gate = Promise.withResolvers<void>();
  const store = memory({ expireIn: 1_000 });
  const run = agent({ model: scripted({ before: () => gate.promise, text: "Hello!" }) })
    .run({ prompt: "Hi", session: "s", store });
  for (let second = 0; second < 10; second++) await time.tickAsync(1_000);
  assertEquals(await store.list(), ["s"]);
  gate.resolve();
  const { status } = await run.result;
  time.tick(999);
  assertEquals([status, await store.list()], ["done", ["s"]]);
  time.tick(1);
  assertEquals(await store.list(), []);
});

Deno.test("memory() keeps a session while its run has a lease", async () => {
  using time = new FakeTime();
  const store = memory({ expireIn: 1_000 });
  const held = { id: "s", messages: [], run: { id: "r" } } as unknown as Session; // the store reads no other field
  await store.save({ ...held, version: 0, lease: { until: Date.now() + 3_000 } });
  time.tick(2_999);
  const key = journalKey(undefined, "s");
  const { mark } = await store.journal.head(key) ?? {};
  const renewal = { from: mark, to: { holder: "renewal", n: 2 }, due: 3_000 };
  assertEquals((await store.journal.append(key, renewal))?.stored, true);
  time.tick(2_999);
  assertEquals(await store.list(), ["s"]);
  time.tick(1_001);
  assertEquals(await store.list(), []);
});

Deno.test("serve() keeps the events of a run that is silent for longer than sessions are kept", async () => {
  using time = new FakeTime();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const app = serve(
    agent({ model: scripted({ before: () => released, text: "Hello!" }), limits: { time: Infinity } }),
    { store: memory({ expireIn: 600_000 }), heartbeat: 2 ** 30 },
  );
  const response = await post(app, "/runs", { prompt: "Hi" });
  for (let minute = 0; minute < 60; minute++) await time.tickAsync(60_000);
  release();
  const events = await eventsOf(response);
  const { run } = first("run.started", events);
  assertEquals(await eventsOf(app.request(`/runs/${run}`)), events);
});

for (const step of [3_600_000, -3_600_000]) {
  Deno.test(`serve() keeps the events of a run if the clock steps by ${step} ms`, async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const model = scripted({ before: () => released, text: "Hello!" });
    const app = serve(agent({ model }), { store: memory({ expireIn: 600_000 }) });
    const reader = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
    const begun = await reader.until("model.started");
    const { run } = first("run.started", framesOf(begun));
    const clock = Date.now.bind(Date);
    using _step = stub(Date, "now", () => clock() + step);
    const followed = await app.request(`/runs/${run}`);
    assertEquals(followed.status, 200);
    release();
    const events = framesOf(begun + await reader.rest());
    assertEquals(events.at(-1)?.type, "run.finished");
    assertEquals(await eventsOf(followed), events);
  });
}

/** An agent whose model answers nothing to the first prompt, and the function that begins its run. */
function silentOnce() {
  const asked = Promise.withResolvers<void>();
  const reasons: string[] = [];
  const model = scripted({
    before: () => {
      asked.resolve();
      return new Promise<never>(() => {});
    },
  }, "Hello!");
  const noting: Middleware = {
    name: "noting",
    async abort({ reason }, next) {
      reasons.push(reason);
      await next();
    },
  };
  const assistant = agent({ model, use: [noting] });
  return {
    assistant,
    asked: asked.promise,
    reasons,
    run: (prompt: string) => assistant.run({ prompt, session: "s1" }),
  };
}

Deno.test("a session in memory is free a lease after the platform has ended the request of its run, which ends as lost", async () => {
  using time = new FakeTime();
  const { asked, reasons, run } = silentOnce();
  {
    using _ = stub(globalThis, "setTimeout", () => undefined as never); // the timers of the request never fire
    run("Hi");
    await asked;
  }
  await time.tickAsync(29_000);
  const early = await run("Again").result;
  assertEquals([early.status, early.error instanceof SessionError && early.error.code], ["failed", "busy"]);
  await time.tickAsync(1_000);
  const { status, text, messages } = await run("Again").result;
  assertEquals([status, text, reasons], ["done", "Hello!", ["lost"]]);
  assertEquals(messages.map(({ role }) => role), ["user", "user", "assistant"]);
});

Deno.test("a session in memory stays with its run while the model is silent, however long", async () => {
  using time = new FakeTime();
  const { asked, reasons, run } = silentOnce();
  const first = run("Hi");
  await asked;
  await time.tickAsync(200_000);
  const { error } = await run("Again").result;
  assertEquals([error instanceof SessionError && error.code, reasons], ["busy", []]);
  first.stop();
  const { status } = await advanceUntilSettled(time, first.result);
  assertEquals([status, reasons], ["aborted", ["stop"]]);
});
