import { agent, memory, type Middleware, serve, type ServeOptions, state, type Store } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { aiSdkMessages, aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals, assertThrows } from "@std/assert";
import { Hono } from "hono";
import { drop } from "../support/asking.ts";
import { eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { saving } from "../support/saving.ts";

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
  const app = serve(agent({ model: scripted("Done."), use: [asking] }), {});
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
  const options: ServeOptions = { signal: closing.signal, onClientGone: "detach" };
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
    journal: saving(store, (session, save) => {
      saved.push(session.id);
      return save();
    }),
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
