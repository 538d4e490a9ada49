import { agent, type Event, type Model, serve } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { type Log, memoryLog } from "@jizai/jizai/session/log";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { drop } from "../support/asking.ts";
import { type App, eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";

/** Requests the events after an event. */
async function follow(app: App, run: string, after?: number | string): Promise<Response> {
  return await app.request(`/runs/${run}`, after === undefined ? {} : { headers: { "last-event-id": `${after}` } });
}

/** A finished run, and the events that its client received. */
async function ended(log: Log = memoryLog()) {
  const app = serve(agent({ model: scripted({ text: ["Hel", "lo!"] }) }), { log });
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  return { app, log, events, run: first("run.started", events).run };
}

/** A run that answers "One.", and "Two." once it is released. Its client has read "One.". */
async function living(heartbeat = 15_000) {
  const gate = Promise.withResolvers<void>();
  const over = Promise.withResolvers<Event>();
  const model: Model = {
    id: "two",
    async *stream() {
      yield [{ type: "text", text: "One." }];
      await gate.promise;
      yield [{ type: "text", text: "Two." }, { type: "finish", reason: "stop" }];
    },
  };
  const observe = (event: Event) =>
    event.type.startsWith("run.") && event.type !== "run.started" && over.resolve(event);
  const app = serve(agent({ model, observe: (event) => void observe(event) }), {
    log: memoryLog(),
    onClientGone: "detach",
    heartbeat,
  });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const events = framesOf(await pieces.until("One."));
  return { app, pieces, events, run: first("run.started", events).run, release: gate.resolve, over: over.promise };
}

Deno.test("GET /runs/:id returns exactly the events after a given one of a run that has ended", async () => {
  const { app, run, events } = await ended();
  assertEquals(await eventsOf(follow(app, run)), events);
  for (const { id } of events.slice(0, -1)) {
    assertEquals(await eventsOf(follow(app, run, id)), events.slice(id));
    assertEquals(await eventsOf(app.request(`/runs/${run}?after=${id}`)), events.slice(id));
  }
  const response = await follow(app, run, 3);
  assertEquals(Object.fromEntries(response.headers), {
    "cache-control": "no-store, no-transform",
    "content-type": "text/event-stream",
    "x-accel-buffering": "no",
  });
  const pieces = piecesOf(response);
  assertEquals(framesOf(await pieces.next() ?? "").length, events.length - 3); // one chunk
  assertEquals(await pieces.next(), undefined);
});

Deno.test("GET /runs/:id prefers Last-Event-ID to the query", async () => {
  const { app, run, events } = await ended();
  const headers = { "last-event-id": "4" };
  assertEquals(await eventsOf(app.request(`/runs/${run}?after=2`, { headers })), events.slice(4));
});

Deno.test("GET /runs/:id rejects a position that is not the number of an event", async () => {
  const { app, run } = await ended();
  for (const after of ["-1", "1.5", "x", "1e3", "0x1", "99999999999999999999"]) {
    const message = (field: string) => `Cannot read ${field}: expected the number of an event`;
    const byHeader = { code: "invalid", message: message("last-event-id"), field: "last-event-id" };
    assertEquals(await refusalOf(follow(app, run, after)), [400, byHeader]);
    const byQuery = { code: "invalid", message: message("after"), field: "after" };
    assertEquals(await refusalOf(app.request(`/runs/${run}?after=${after}`)), [400, byQuery]);
  }
});

Deno.test("GET /runs/:id answers 204 if no event is left, for a finished and a paused run", async () => {
  const { app, run, events } = await ended();
  const nothing = await follow(app, run, events.length);
  assertEquals([nothing.status, await nothing.text()], [204, ""]);

  const asking = serve(agent({ model: scripted({ calls: [["drop", { table: "a" }]] }, "Done."), tools: [drop] }), {
    log: memoryLog(),
  });
  const before = await eventsOf(post(asking, "/runs", { prompt: "Drop a" }));
  const started = first("run.started", before);
  assertEquals(await eventsOf(follow(asking, started.run, 3)), before.slice(3));
  assertEquals((await follow(asking, started.run, before.length)).status, 204);
  const answers = [{ callId: "call_1", type: "approve" }];
  const rest = await eventsOf(post(asking, `/sessions/${started.session}/answers`, { answers }));
  assertEquals(await eventsOf(follow(asking, started.run, before.length)), rest);
  assertEquals(await eventsOf(follow(asking, started.run)), [...before, ...rest]);
});

Deno.test("GET /runs/:id answers 404 for unknown runs, and for all runs without a log", async () => {
  const { app } = await ended();
  const unknown = async (app: App, run: string) => {
    const message = `Cannot follow run "${run}": there is none`;
    assertEquals(await refusalOf(follow(app, encodeURIComponent(run))), [404, { code: "unknown", message }]);
  };
  for (const run of ["r1", "__proto__", "key:1", "a b", "a%20b"]) await unknown(app, run);
  const without = serve(agent({ model: scripted("Hello!") }));
  await unknown(without, first("run.started", await eventsOf(post(without, "/runs", { prompt: "Hi" }))).run);
});

Deno.test("GET /runs/:id rejects a position after the last event", async () => {
  const { app, run, events } = await ended();
  const last = events.length;
  const message = `Cannot follow run "${run}" after event ${last + 1}: the last is ${last}`;
  assertEquals(await refusalOf(follow(app, run, last + 1)), [409, { code: "ahead", message }]);
});

Deno.test("GET /runs/:id returns 410 if the next events have been deleted", async () => {
  const { app, log, run, events } = await ended();
  await log.delete(run);
  await log.append(run, {
    after: 4,
    lines: events.slice(4).map(({ id: _, ...event }) => JSON.stringify(event)),
    ended: true,
  });
  for (const after of [0, 3]) {
    const message = `Cannot follow run "${run}" after event ${after}: the next events have been deleted`;
    assertEquals(await refusalOf(follow(app, run, after)), [410, { code: "forgotten", message }]);
  }
  assertEquals(await eventsOf(follow(app, run, 4)), events.slice(4));
});

Deno.test("GET /runs/:id streams past and new events to two clients at once and to one that comes between events", async () => {
  const { app, pieces, run, events, release } = await living();
  await pieces.cancel(); // before the next text
  const two = [await follow(app, run, 2), await follow(app, run, events.length)];
  const received = two.map((response) => eventsOf(response));
  release();
  const [long = [], short = []] = await Promise.all(received);
  assertEquals(long.map(({ id }) => id), Array.from({ length: long.length }, (_, index) => index + 3));
  assertEquals(short, long.slice(events.length - 2));
  assertEquals(short.map(({ type }) => type), [
    "text.delta",
    "model.finished",
    "turn.finished",
    "session.closed",
    "run.finished",
  ]);
  assertEquals(await eventsOf(follow(app, run)), [...events.slice(0, 2), ...long]);
});

Deno.test("GET /runs/:id follows a run without events", async () => {
  const gate = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted({ before: () => gate.promise, text: "Hello!" }) }), {
    log: memoryLog(),
    onClientGone: "detach",
  });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const before = framesOf(await pieces.until("run.started"));
  await pieces.cancel();
  const rest = eventsOf(follow(app, first("run.started", before).run, before.length));
  gate.resolve();
  assertEquals((await rest).at(-1)?.type, "run.finished");
});

Deno.test("GET /runs/:id has no effect on the run when its client disconnects", async () => {
  const { app, pieces, run, release, over } = await living();
  const following = piecesOf(await follow(app, run));
  await following.until("One.");
  await following.cancel();
  await (await follow(app, run)).body?.cancel(); // before the first read
  release();
  assertEquals((await over).type, "run.finished");
  await pieces.rest();
});

Deno.test("GET /runs/:id sends a comment after silence", async () => {
  using time = new FakeTime();
  const { app, pieces, run, events, release } = await living(1_000);
  const following = piecesOf(await follow(app, run, events.length));
  const beat = following.next();
  await time.tickAsync(1_000);
  assertEquals(await beat, ":\n\n");
  release();
  await time.tickAsync();
  assertEquals(framesOf((await following.rest()).replaceAll(":\n\n", "")).at(-1)?.type, "run.finished");
  await pieces.rest();
  await time.runMicrotasks();
  assertEquals(time.next(), false);
});

Deno.test("HEAD /runs/:id answers without following", async () => {
  using time = new FakeTime();
  const { app, pieces, run, release } = await living();
  const { status, headers, body } = await app.request(`/runs/${run}`, { method: "HEAD" });
  assertEquals([status, headers.get("content-type"), body], [200, "text/event-stream", null]);
  release();
  await pieces.rest();
  await time.runMicrotasks();
  assertEquals(time.next(), false);
});

Deno.test("GET /runs/:id ends a stream whose log fails, and reports it to onError", async () => {
  const reported: unknown[] = [];
  const log = memoryLog();
  const failing: Log = {
    ...log,
    // deno-lint-ignore require-yield
    async *tail() {
      await Promise.reject(new Error("The log is down"));
    },
  };
  const gate = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted({ before: () => gate.promise, text: "Hello!" }) }), {
    log: failing,
    onError: (error) => reported.push(error instanceof Error && error.message),
  });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const before = framesOf(await pieces.until("model.started"));
  assertEquals(await eventsOf(follow(app, first("run.started", before).run)), before);
  assertEquals(reported, ["The log is down"]);
  gate.resolve();
  await pieces.rest();
});
