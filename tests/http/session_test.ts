import {
  agent,
  memory,
  type Middleware,
  type Model,
  serve,
  type ServeOptions,
  state,
  type Store,
  textOf,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { memoryLog } from "@jizai/jizai/session/log";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { Hono } from "hono";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, shared } from "../support/process.ts";
import { type App, eventsOf, first, type Framed, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";

const call = (table: string) => ({ calls: [["drop", { table }]] } as const);

Deno.test("GET /sessions/:id returns its messages, and the active run", async () => {
  const gate = Promise.withResolvers<void>();
  const model = scripted(call("a"), { before: () => gate.promise, text: "Done." });
  const app = serve(agent({ model, tools: [drop] }));
  const events = await eventsOf(post(app, "/runs", { prompt: "Drop a" }));
  const { session, run } = first("run.started", events);
  const show = async () => await (await app.request(`/sessions/${session}`)).json();
  const prompt = { role: "user", parts: [{ type: "text", text: "Drop a" }] };
  const { questions } = first("run.paused", events);
  assertEquals(await show(), { id: session, messages: [prompt], run: { id: run, status: "paused", questions } });

  const answers = [{ callId: "call_1", type: "approve" }];
  const pieces = piecesOf(await post(app, `/sessions/${session}/answers`, { answers }));
  await pieces.until("model.started");
  const running = await show();
  assertEquals(running.run, { id: run, status: "running", questions: [] });
  gate.resolve();
  await pieces.rest();
  const { messages, ...rest } = await show();
  assertEquals([rest, messages.map(({ role }: { readonly role: string }) => role)], [
    { id: session },
    ["user", "assistant", "tool", "assistant"],
  ]);
});

Deno.test("GET /sessions/:id answers 404 for unknown sessions", async () => {
  const app = serve(agent({ model: scripted() }));
  for (const session of ["s1", "__proto__"]) {
    const message = `Cannot show session "${session}": there is none`;
    assertEquals(await refusalOf(app.request(`/sessions/${session}`)), [404, { code: "unknown", message }]);
  }
});

Deno.test("POST /sessions/:id/answers accepts a reply in place of the tool", async () => {
  const app = serve(agent({ model: scripted(call("a"), "Done."), tools: [drop] }));
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  const answers = [{ callId: "call_1", type: "reply", text: "I did it." }];
  const rest = await eventsOf(post(app, `/sessions/${session}/answers`, { answers }));
  const { status, parts } = first("tool.finished", rest).result;
  assertEquals([status, parts[0]?.type === "text" && parts[0].text.includes("I did it.")], ["ok", true]);
});

Deno.test("POST /sessions/:id/answers accepts a permanent approval", async () => {
  const app = serve(agent({ model: scripted(call("a"), call("b"), "Done."), tools: [drop] }));
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop both" })));
  const answers = [{ callId: "call_1", type: "approve", always: "tool" }];
  const rest = await eventsOf(post(app, `/sessions/${session}/answers`, { answers }));
  assertEquals(
    rest.flatMap((event) => event.type === "approval.decided" ? [event.by] : []),
    ["person", "rule"],
  );
});

Deno.test("POST /sessions/:id/answers accepts only a reply to the question of a run", async () => {
  const received: unknown[] = [];
  const asking: Middleware = {
    name: "asking",
    prompt(ctx, next) {
      if (ctx.run.answers.length === 0) throw ctx.run.pause("Which one?");
      received.push(...ctx.run.answers);
      return next();
    },
  };
  const app = serve(agent({ model: scripted("Done."), use: [asking] }));
  const events = await eventsOf(post(app, "/runs", { prompt: "Drop it" }));
  const { session } = first("run.started", events);
  const { questions } = first("run.paused", events);
  assertEquals(questions.map(({ callId, questions }) => [callId, questions]), [[undefined, ["Which one?"]]]);
  const answer = (given: object) => post(app, `/sessions/${session}/answers`, { answers: [given] });
  assertEquals((await refusalOf(answer({ type: "approve" })))[0], 400);
  assertEquals((await refusalOf(answer({ callId: "call_1", type: "reply", text: "a" })))[0], 409);
  const rest = await eventsOf(answer({ type: "reply", text: "The first." }));
  assertEquals(rest.at(-1)?.type, "run.finished");
  assertEquals(received, [{ type: "reply", text: "The first." }]);
});

Deno.test("POST /sessions/:id/answers for an earlier pause does not answer a later question", async () => {
  const asked = state("asked", () => 0);
  const asking: Middleware = {
    name: "asking",
    turn: (ctx, next) => {
      const n = asked.update(ctx, (n) => n + 1);
      return n < 3 ? Promise.reject(ctx.run.pause(`Question ${n}?`)) : next();
    },
  };
  const app = serve(agent({ model: scripted("Done."), use: [asking] }), { log: memoryLog() });
  const one = await eventsOf(post(app, "/runs", { prompt: "Go" }));
  const { session, run } = first("run.started", one);
  const send = (at: number, asker = run) =>
    post(app, `/sessions/${session}/answers`, { answers: [{ type: "reply", text: "Yes" }], run: asker, at });
  const two = await eventsOf(send(one.length));
  assertEquals(first("run.paused", two).questions.flatMap(({ questions }) => questions), ["Question 2?"]);
  const last = one.length + two.length;
  const message = `Cannot resume session "${session}": it is not paused`;
  for (const late of [send(one.length), send(last, crypto.randomUUID())]) {
    assertEquals(await refusalOf(late), [409, { code: "not-paused", message }]);
  }
  assertEquals((await eventsOf(send(last))).at(-1)?.type, "run.finished");
});

Deno.test("serve() takes the session from the URL with the session option, and creates it", async () => {
  const store = memory();
  const model = scripted("One.", "Two.");
  const served = serve(agent({ model }), { store, session: (c) => c.req.param("room") });
  const app = new Hono().route("/rooms/:room", served);
  for (const text of ["One.", "Two."]) {
    const events = await eventsOf(post(app, "/rooms/r1/runs", { prompt: "Hi" }));
    assertEquals([first("run.started", events).session, first("run.finished", events).text], ["r1", text]);
  }
  assertEquals((await store.load("r1"))?.messages.length, 4);
  const message = `Cannot run session "r2": there is none`;
  const other = post(app, "/rooms/r1/runs", { prompt: "Hi", session: "r2" });
  assertEquals(await refusalOf(other), [404, { code: "unknown", message }]);
  assertEquals((await app.request("/rooms/r1/sessions/r1")).status, 200);
});

Deno.test("serve() can be mounted at a path whose parameter is called id, as those of its own routes", async () => {
  const options: ServeOptions = {
    log: memoryLog(),
    wires: [aiSdkUi(), aiSdkMessages()],
    session: (c) => c.req.param("id"),
  };
  const app = new Hono().route("/:id", serve(agent({ model: scripted("Hello!") }), options));
  const { run } = first("run.started", await eventsOf(post(app, "/tea/runs", { prompt: "Hi" })));
  assertEquals(first("run.finished", await eventsOf(app.request(`/tea/runs/${run}`))).text, "Hello!");
  assertEquals((await post(app, `/tea/runs/${run}/stop`, {})).status, 204);
  assertEquals((await app.request("/tea/sessions/tea")).status, 200);
  assertEquals((await app.request("/tea/sessions/coffee")).status, 404);
  assertEquals((await (await app.request("/tea/chat/tea")).json()).length, 2);
});

Deno.test("serve() rejects leases out of range", () => {
  for (const lease of [0, -1, NaN, Infinity]) {
    assertThrows(
      () => serve(agent({ model: scripted() }), { lease }),
      RangeError,
      `Cannot serve: \`lease\` is ${lease}; expected a positive number up to 2147483647 milliseconds`,
    );
  }
});

Deno.test("serve() stops its runs, ends its streams and refuses requests after its signal has aborted", async () => {
  const closing = new AbortController();
  const options: ServeOptions = { log: memoryLog(), signal: closing.signal, onClientGone: "detach" };
  const wait = (_request: unknown, signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const app = serve(agent({ model: scripted({ before: wait }) }), options);
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("model.started")));
  const following = app.request(`/runs/${run}`);
  await following;
  closing.abort();
  const last = framesOf(await pieces.rest()).at(-1);
  assertEquals([last?.type, last && "reason" in last && last.reason], ["run.aborted", "shutdown"]);
  await (await following).text();

  const error = { code: "shutdown", message: "Cannot serve the request: the server is shutting down" };
  const requests = [
    post(app, "/runs", { prompt: "Hi" }),
    app.request(`/runs/${run}`),
    post(app, `/runs/${run}/stop`),
    app.request(`/sessions/${session}`),
    post(app, `/sessions/${session}/answers`, { answers: [] }),
    app.request("/health"),
  ];
  for (const request of requests) assertEquals(await refusalOf(request), [503, error]);
  assertEquals((await app.request("/elsewhere")).status, 404);
});

Deno.test("serve() begins nothing for a request that arrived before its signal aborted", async () => {
  const closing = new AbortController();
  const saved: string[] = [];
  const store = memory();
  const watching: Store = {
    ...store,
    save(session) {
      saved.push(session.id);
      return store.save(session);
    },
  };
  const app = serve(agent({ model: scripted("Hello!") }), {
    store: watching,
    signal: closing.signal,
    vars: () => Promise.resolve(closing.abort()),
  });
  assertEquals((await refusalOf(post(app, "/runs", { prompt: "Hi" })))[0], 503);
  assertEquals(saved, []);
});

Deno.test("POST /sessions/:id/answers refuses an answer of an unknown type or scope with 400", async () => {
  const app = serve(agent({ model: scripted(call("a"), "Done."), tools: [drop] }));
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  for (const wrong of [{ type: "allow" }, { type: "approve", always: "session" }]) {
    const answers = [{ callId: "call_1", ...wrong }];
    const response = await post(app, `/sessions/${session}/answers`, { answers });
    assertEquals([response.status, (await response.json()).error.code], [400, "invalid"]);
  }
});

/** A model that answers each prompt with the prompt itself, once it is released. */
function echo() {
  const asked: string[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const gateOf = (text: string) => gates.getOrInsertComputed(text, () => Promise.withResolvers<void>());
  const model: Model = {
    id: "echo",
    async *stream({ messages }, { signal }) {
      const last = messages.findLast((message) => message.role === "user");
      const text = last ? textOf(last) : "";
      asked.push(text);
      const left = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      await Promise.race([gateOf(text).promise, left]);
      yield [{ type: "text", text }, { type: "finish", reason: "stop" }];
    },
  };
  return { model, asked, let: (text: string) => gateOf(text).resolve() };
}

/** A session with an active run, and functions that send more prompts. */
async function scene(options: ServeOptions) {
  const { model, asked, ...rest } = echo();
  const app = serve(agent({ model }), { onClientGone: "detach", ...options });
  rest.let("zero");
  const started = first("run.started", await framedEvents(post(app, "/runs", { prompt: "zero" })));
  const { session } = started;
  const send = (prompt: string, init: RequestInit = {}) =>
    Promise.resolve(app.request("/runs", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt, session }),
      ...init,
    }));
  const one = await send("one");
  asked.shift();
  return { app, model, asked, session, send, one, ...rest };
}

async function framedEvents(response: Response | Promise<Response>): Promise<Framed[]> {
  return framesOf((await (await response).text()).replaceAll(":\n\n", ""));
}

async function endOf(response: Response | Promise<Response>) {
  const { type, ...rest } = (await framedEvents(response)).at(-1) ?? { type: "none" };
  return [type, "reason" in rest ? rest.reason : "text" in rest ? rest.text : undefined];
}

function turns(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}

const logs: readonly ServeOptions[] = [{}, { log: memoryLog() }];

for (const options of logs) {
  const how = options.log ? "with a log" : "without a log";

  Deno.test(`serve() ${how} with busy: "queue" runs the prompts of a session one after another, in order`, async () => {
    const { asked, session, send, one, app, ...rest } = await scene({ busy: "queue", ...options });
    const more = ["two", "three", "four"].map((prompt) => send(prompt));
    await turns();
    assertEquals(asked, ["one"]);
    for (const prompt of ["four", "three", "two", "one"]) rest.let(prompt);
    assertEquals(await Promise.all([one, ...more].map(endOf)), [
      ["run.finished", "one"],
      ["run.finished", "two"],
      ["run.finished", "three"],
      ["run.finished", "four"],
    ]);
    assertEquals(asked, ["one", "two", "three", "four"]);
    const { messages } = await (await app.request(`/sessions/${session}`)).json();
    assertEquals(messages.length, 10);
  });

  Deno.test(`serve() ${how} with busy: "replace" stops the active run, and begins`, async () => {
    const { asked, send, one, ...rest } = await scene({ busy: "replace", ...options });
    const two = await send("two");
    assertEquals(await endOf(one), ["run.aborted", "replaced"]);
    rest.let("two");
    assertEquals(await endOf(two), ["run.finished", "two"]);
    assertEquals(asked, ["one", "two"]);
  });

  Deno.test(`serve() ${how} with busy: "replace" gives the session to the last of several concurrent requests`, async () => {
    const { send, one, ...rest } = await scene({ busy: "replace", ...options });
    const prompts = Array.from({ length: 14 }, (_, index) => `more ${index}`);
    const more = prompts.map((prompt) => send(prompt));
    rest.let("more 13");
    const ends = await Promise.all([one, ...more].map(endOf));
    const replaced = prompts.map(() => ["run.aborted", "replaced"]);
    assertEquals(ends, [...replaced, ["run.finished", "more 13"]]);
  });
}

Deno.test('busy: "queue" lets ten prompts wait for one session', async () => {
  const { session, send, one, asked, ...rest } = await scene({ busy: "queue" });
  const prompts = Array.from({ length: 10 }, (_, index) => `more ${index}`);
  const more = prompts.map((prompt) => send(prompt));
  const error = { code: "busy", message: `Cannot run session "${session}": 10 prompts wait for it` };
  await turns();
  assertEquals(await refusalOf(send("too many")), [409, error]);
  for (const prompt of ["one", ...prompts]) rest.let(prompt);
  await Promise.all([one, ...more].map(endOf));
  assertEquals(asked, ["one", ...prompts]);
  rest.let("later");
  assertEquals(await endOf(send("later")), ["run.finished", "later"]);
});

Deno.test('busy: "queue" skips prompts whose client has left', async () => {
  const { asked, send, one, ...rest } = await scene({ busy: "queue" });
  const leaving = new AbortController();
  const left = Array.from({ length: 10 }, (_, index) => send(`left ${index}`, { signal: leaving.signal }));
  await turns();
  leaving.abort();
  const stays = send("stays"); // the queue has room again
  await turns();
  for (const prompt of ["one", "stays"]) rest.let(prompt);
  assertEquals(await endOf(one), ["run.finished", "one"]);
  assertEquals(await endOf(stays), ["run.finished", "stays"]);
  for (const response of left) assertEquals((await response).status, 409);
  assertEquals(asked, ["one", "stays"]);
});

Deno.test('busy: "queue" continues with the next prompt if one cannot begin', async () => {
  const { asked, app, send, one, ...rest } = await scene({ busy: "queue" });
  const wrong = post(app, "/runs", { prompt: "two", session: "s9" });
  const next = send("three");
  for (const prompt of ["one", "three"]) rest.let(prompt);
  assertEquals((await wrong).status, 404);
  assertEquals([await endOf(one), await endOf(next)], [["run.finished", "one"], ["run.finished", "three"]]);
  assertEquals(asked, ["one", "three"]);
});

Deno.test('busy: "queue" begins one run for one idempotency key', async () => {
  const { asked, app, session, one, ...rest } = await scene({ busy: "queue", log: memoryLog() });
  const same = [1, 2, 3].map(() => post(app, "/runs", { prompt: "two", session }, { "idempotency-key": "k1" }));
  await turns();
  for (const prompt of ["one", "two"]) rest.let(prompt);
  assertEquals(await endOf(one), ["run.finished", "one"]);
  const all = await Promise.all(same.map(framedEvents));
  for (const events of all) assertEquals(events, all[0]);
  assertEquals([all[0]?.at(-1)?.type, asked], ["run.finished", ["one", "two"]]);
});

/** A session whose run is active in another process. */
async function elsewhere(busy: "refuse" | "queue" | "replace") {
  const among = shared();
  const { model, asked, ...rest } = echo();
  const reasons: string[] = [];
  const watch: Middleware = {
    name: "watch",
    async abort({ reason }, next) {
      reasons.push(reason);
      await next();
    },
  };
  const [here, there] = [1, 2].map(() => processOf(among, agent({ model, use: [watch] }), { busy }));
  if (!here || !there) throw new Error("Cannot go on: there are two");
  const one = await post(there.app, "/runs", { prompt: "one" });
  const pieces = piecesOf(one);
  const { session, run } = first("run.started", framesOf(await pieces.until("model.started")));
  const send = (app: App, prompt: string) => post(app, "/runs", { prompt, session });
  return { here, there, pieces, session, run, asked, reasons, send, ...rest };
}

Deno.test('busy: "queue" waits for the end of a run in another process', async () => {
  using time = new FakeTime();
  const { here, pieces, asked, send, ...rest } = await elsewhere("queue");
  const two = send(here.app, "two");
  await advance(time, 100_000); // its process is alive
  assertEquals(asked, ["one"]);
  for (const prompt of ["one", "two"]) rest.let(prompt);
  await advanceUntilSettled(time, pieces.rest());
  assertEquals(await advanceUntilSettled(time, endOf(two)), ["run.finished", "two"]);
});

Deno.test('busy: "queue" ends a run whose process died, and begins', async () => {
  using time = new FakeTime();
  const { here, there, asked, run, send, reasons, ...rest } = await elsewhere("queue");
  const two = send(here.app, "two");
  await time.tickAsync();
  there.kill();
  rest.let("two");
  assertEquals(await advanceUntilSettled(time, endOf(two)), ["run.finished", "two"]);
  assertEquals([await advanceUntilSettled(time, endOf(Promise.resolve(here.app.request(`/runs/${run}`)))), reasons], [
    ["run.aborted", "lost"],
    ["lost"],
  ]);
  assertEquals(asked, ["one", "two"]);
});

Deno.test('busy: "replace" ends a run in another process, which stops', async () => {
  using time = new FakeTime();
  const { here, there, asked, run, pieces, send, reasons, ...rest } = await elsewhere("replace");
  rest.let("two");
  assertEquals(await advanceUntilSettled(time, endOf(send(here.app, "two"))), ["run.finished", "two"]);
  for (const { app } of [here, there]) {
    assertEquals(await advanceUntilSettled(time, endOf(Promise.resolve(app.request(`/runs/${run}`)))), [
      "run.aborted",
      "replaced",
    ]);
  }
  await advance(time, 30_000);
  await pieces.rest();
  assertEquals([asked, reasons], [["one", "two"], ["replaced", "lost"]]);
});

Deno.test("serve() refuses answers while a run holds the session, with every busy option", async () => {
  for (const busy of ["refuse", "queue", "replace"] as const) {
    const { app, session, one, ...rest } = await scene({ busy });
    const message = `Cannot run session "${session}": another run has it`;
    const answers = post(app, `/sessions/${session}/answers`, { answers: [] });
    assertEquals(await refusalOf(answers), [409, { code: "busy", message }]);
    rest.let("one");
    assertEquals(await endOf(one), ["run.finished", "one"]);
  }
});

Deno.test('busy: "queue" does not delay prompts of other sessions', async () => {
  const gate = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted({ before: () => gate.promise, text: "Slow." }, "Fast.") }), {
    busy: "queue",
  });
  const slow = await post(app, "/runs", { prompt: "Hi" });
  assertEquals(await endOf(post(app, "/runs", { prompt: "Hi" })), ["run.finished", "Fast."]);
  gate.resolve();
  assertEquals(await endOf(slow), ["run.finished", "Slow."]);
});
