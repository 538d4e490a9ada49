/**
 * `GET /runs/:id`, the listeners of its followers, and requests to runs whose first events have been deleted.
 */
import { agent, type Event, memory, type Model, serve, type Store, tool } from "@jizai/jizai";
import { client, noRun } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { resumeTokens } from "@jizai/jizai/session/resume_token";
import { migrate, sqliteStore } from "@jizai/jizai/session/sqlite";
import { assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { halting } from "../support/halting.ts";
import { processOf, shared } from "../support/process.ts";
import { type App, eventsOf, first, type Framed, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { storedMail } from "../support/stored_run.ts";

const keys = [{ id: "k1", secret: "a secret of at least thirty-two bytes" }];

/** Requests the events after an event. */
async function follow(app: App, run: string, after?: number | string): Promise<Response> {
  return await app.request(`/runs/${run}`, after === undefined ? {} : { headers: { "last-event-id": `${after}` } });
}

/** A finished run, and the events that its client received. */
async function ended(store: Store = memory()) {
  const app = serve(agent({ model: scripted({ text: ["Hel", "lo!"] }) }), { store });
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  return { app, store, events, run: first("run.started", events).run };
}

/** A run that answers "One.", and "Two." once it is released. Its client has read "One.". */
async function living(heartbeat = 8_000) {
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

  const asking = serve(agent({ model: scripted({ calls: [["drop", { table: "a" }]] }, "Done."), tools: [drop] }), {});
  const before = await eventsOf(post(asking, "/runs", { prompt: "Drop a" }));
  const started = first("run.started", before);
  assertEquals(await eventsOf(follow(asking, started.run, 3)), before.slice(3));
  assertEquals((await follow(asking, started.run, before.length)).status, 204);
  const answers = [{ callId: "call_1", type: "approve" }];
  const rest = await eventsOf(post(asking, `/sessions/${started.session}/answers`, { answers }));
  assertEquals(await eventsOf(follow(asking, started.run, before.length)), rest);
  assertEquals(await eventsOf(follow(asking, started.run)), [...before, ...rest]);
});

Deno.test("GET /runs/:id answers 404 for unknown runs, and for all runs without a store", async () => {
  const { app } = await ended();
  const unknown = async (app: App, run: string) => {
    const message = `Cannot follow run "${run}": there is none`;
    assertEquals(await refusalOf(follow(app, encodeURIComponent(run))), [404, { code: "unknown", message }]);
  };
  for (const run of ["r1", "__proto__", "key:1", "a b", "a%20b"]) await unknown(app, run);
  const without = serve(agent({ model: scripted("Hello!") }), { resumeTokens: resumeTokens({ keys }) });
  await unknown(without, first("run.started", await eventsOf(post(without, "/runs", { prompt: "Hi" }))).run);
});

Deno.test("GET /runs/:id rejects a position after the last event", async () => {
  const { app, run, events } = await ended();
  const last = events.length;
  const message = `Cannot follow run "${run}" after event ${last + 1}: the last is ${last}`;
  assertEquals(await refusalOf(follow(app, run, last + 1)), [409, { code: "ahead", message }]);
});

Deno.test("GET /runs/:id returns 410 if the next events have been deleted", async () => {
  const { app, run, events } = await ended({ ...memory(), journal: withoutFirst(4, memory()).journal });
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
    onClientGone: "detach",
  });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const before = framesOf(await pieces.until("run.started"));
  await pieces.cancel();
  const rest = eventsOf(follow(app, first("run.started", before).run, before.length));
  gate.resolve();
  assertEquals((await rest).at(-1)?.type, "run.finished");
});

/** A run of five million characters that has ended, and a store that counts what followers read of it. */
async function longEnded(kept: Store) {
  const counts = { pages: 0, most: 0 };
  const { journal } = kept;
  const store: Store = {
    ...kept,
    journal: {
      ...journal,
      async read(key, run, after) {
        const found = await journal.read(key, run, after);
        counts.pages++;
        counts.most = Math.max(counts.most, found?.lines.reduce((sum, { length }) => sum + length, 0) ?? 0);
        return found;
      },
    },
  };
  const text = Array.from({ length: 500 }, (_, index) => `${index} `.padEnd(10_000, "x"));
  const app = serve(agent({ model: scripted({ text }) }), { store });
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  await app.settled(); // the events are packed
  return { app, events, run: first("run.started", events).run, counts };
}

Deno.test("GET /runs/:id holds one page of the record for a client that does not read, and a part of it in each form", async () => {
  using database = new DatabaseSync(":memory:");
  migrate(database);
  for (const kept of [memory(), sqliteStore(database)]) {
    const { app, events, run, counts } = await longEnded(kept);
    counts.pages = 0;
    const idle = await Promise.all(Array.from({ length: 20 }, async () => piecesOf(await app.request(`/runs/${run}`))));
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve));
    const looks = 2; // the end of the record, and its first page
    assertEquals([counts.pages <= 20 * looks, counts.most < 700_000], [true, true]);
    const chunks: number[] = [];
    for (const { next } of idle) chunks.push((await next())?.length ?? 0);
    assertEquals(chunks.every((length) => length > 0 && length < 160_000), true);
    for (const { cancel } of idle) await cancel();
    assertEquals(await eventsOf(app.request(`/runs/${run}`)), events);
  }
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

Deno.test("GET /runs/:id ends a stream whose store fails, and reports it to onError", async () => {
  const reported: unknown[] = [];
  const { journal } = memory();
  const read: typeof journal.read = (key, run, after) =>
    after > 0 ? Promise.reject(new Error("The store is down")) : journal.read(key, run, after);
  const gate = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted({ before: () => gate.promise, text: "Hello!" }) }), {
    store: { ...memory(), journal: { ...journal, read } },
    onError: (error) => reported.push(error instanceof Error && error.message),
  });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const before = framesOf(await pieces.until("model.started"));
  const following = piecesOf(await follow(app, first("run.started", before).run));
  assertEquals(framesOf(await following.until("model.started")), before);
  gate.resolve();
  assertEquals(await following.rest(), "");
  assertEquals(reported, ["The store is down"]);
  await pieces.rest();
});

/** Counts the listeners of a signal. Those that were added with a signal are removed when that signal aborts. */
function countListeners(signal: AbortSignal): () => number {
  const added: (AbortSignal | undefined)[] = [];
  const add = signal.addEventListener.bind(signal);
  signal.addEventListener = (...[type, listener, options]: Parameters<AbortSignal["addEventListener"]>) => {
    added.push(typeof options === "object" ? options.signal : undefined);
    add(type, listener, options);
  };
  return () => added.filter((until) => !until?.aborted).length;
}

Deno.test("a follower leaves no listener on the signal of the server where AbortSignal.any() is missing", async () => {
  const { any } = AbortSignal;
  Reflect.deleteProperty(AbortSignal, "any");
  try {
    const shutdown = new AbortController();
    const listeners = countListeners(shutdown.signal);
    const { model, begun, release } = halting();
    const app = serve(agent({ model }), { signal: shutdown.signal });
    const pieces = piecesOf(await post(app, "/runs", { prompt: "Go" }));
    const { run } = first("run.started", framesOf(await pieces.until("One.")));
    await begun;
    const before = listeners();
    const follower = await app.request(`/runs/${run}`);
    const text = follower.text();
    release();
    await pieces.rest();
    await text;
    assertEquals(listeners(), before);
  } finally {
    AbortSignal.any = any;
  }
});

// Requests to a run whose first events have been deleted.

/** Returns the store without the first `count` events of each run. */
function withoutFirst(count: number, { journal }: Pick<Store, "journal">): Store {
  return durable({
    ...journal,
    async read(key, run, after) {
      const page = await journal.read(key, run, after);
      if (!page) return undefined;
      const deleted = Math.max(count + 1 - page.first, 0);
      return { ...page, first: page.first + deleted, lines: page.lines.slice(deleted) };
    },
  });
}

/** A run whose tool waits, and another process, for which the first events of the run have been deleted. */
async function elsewhere() {
  const among = shared();
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const model = scripted({ calls: [["work", {}]] }, "Done.");
  const made = agent({ model, tools: [work] });
  const here = processOf(among, made);
  const pieces = piecesOf(await post(here.app, "/runs", { prompt: "Go" }));
  const { run, session } = first("run.started", framesOf(await pieces.until(`"tool.started"`)));
  const { app } = processOf({ store: withoutFirst(2, among.store) }, made);
  return { among, app, run, session, pieces, gate };
}

Deno.test("POST /runs/:id/stop stops a run in another process whose first events were deleted", async () => {
  using time = new FakeTime();
  const { among, app, run, session, pieces, gate } = await elsewhere();
  assertEquals((await advanceUntilSettled(time, post(app, `/runs/${run}/stop`))).status, 204);
  await advance(time, 30_000);
  gate.resolve("worked");
  await pieces.rest();
  const { last, run: current } = await among.store.load(session) ?? {};
  assertEquals([current, last?.event.type], [undefined, "run.aborted"]);
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204); // the session tells that the run has ended
});

Deno.test("POST /runs/:id/messages and finish reach a run in another process whose first events were deleted", async () => {
  const { among, app, run, session, pieces, gate } = await elsewhere();
  assertEquals((await post(app, `/runs/${run}/messages`, { text: "Hurry" })).status, 202);
  assertEquals((await post(app, `/runs/${run}/finish`)).status, 204);
  assertEquals(storedMail(await among.store.load(session)), 2);
  gate.resolve("worked");
  await pieces.rest();
});

Deno.test("POST /runs/:id/stop stops a paused run whose first events were deleted", async () => {
  using time = new FakeTime();
  const among = shared();
  const asking = agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [drop] });
  const { app } = processOf({ store: withoutFirst(2, among.store) }, asking);
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  assertEquals((await advanceUntilSettled(time, post(app, `/runs/${run}/stop`))).status, 204);
  await app.settled();
  assertEquals((await among.store.load(session))?.last?.event.type, "run.aborted");
});

Deno.test("POST /runs/:id/stop answers 404 for a run in another process if sessions are not stored", async () => {
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const made = agent({ model: scripted({ calls: [["work", {}]] }, "Done."), tools: [work] });
  const process = () => serve(made, { resumeTokens: resumeTokens({ keys }) });
  const pieces = piecesOf(await post(process(), "/runs", { prompt: "Go" }));
  const { run } = first("run.started", framesOf(await pieces.until(`"tool.started"`)));
  const message = `Cannot stop run "${run}": it does not run`;
  assertEquals(await refusalOf(post(process(), `/runs/${run}/stop`)), [404, { code: "unknown", message }]);
  gate.resolve("worked");
  await pieces.rest();
});

Deno.test("client() stops a run whose first events were deleted", async () => {
  using time = new FakeTime();
  const { among, app, run, session, pieces, gate } = await elsewhere();
  await advanceUntilSettled(time, client("", { fetch: app.request }).follow({ ...noRun, run, session }).stop());
  await advance(time, 30_000);
  gate.resolve("worked");
  await pieces.rest();
  assertEquals((await among.store.load(session))?.last?.event.type, "run.aborted");
});

/** A server of one session, that keeps the events of earlier runs for a minute, and the events that its clients received. */
function minutely() {
  const model = scripted(...Array.from({ length: 4 }, () => "Hello!"));
  const app = serve(agent({ model }), { store: shared().store, session: () => "s", events: { keep: 60_000 } });
  const records: (readonly Framed[])[] = [];
  return {
    app,
    records,
    talk: async () => void records.push(await eventsOf(post(app, "/runs", { prompt: "Hi" }))),
    statuses: () =>
      Promise.all(records.map(async (events) => (await follow(app, first("run.started", events).run)).status)),
  };
}

Deno.test("serve() deletes the events of runs that ended longer ago than `keep` when the next run of their session begins", async () => {
  using time = new FakeTime();
  const { app, records, talk, statuses } = minutely();
  await talk();
  await time.tickAsync(59_000);
  await talk();
  await time.tickAsync(61_000);
  assertEquals(await statuses(), [200, 200]); // no run has begun since
  await talk();
  assertEquals(await statuses(), [404, 404, 200]);
  const { run } = first("run.started", records[0] ?? []);
  const message = `Cannot follow run "${run}": there is none`;
  assertEquals(await refusalOf(follow(app, run)), [404, { code: "unknown", message }]);
  assertEquals(await eventsOf(follow(app, first("run.started", records[2] ?? []).run)), records[2]);
});

Deno.test("serve() deletes the events of earlier runs of a session that is never silent for as long as `keep`", async () => {
  using time = new FakeTime();
  const { talk, statuses } = minutely();
  for (let run = 0; run < 4; run++) {
    await talk();
    await time.tickAsync(40_000);
  }
  assertEquals(await statuses(), [404, 404, 200, 200]);
});

Deno.test("serve() keeps the events before a pause that lasts longer than `keep`", async () => {
  using time = new FakeTime();
  const model = scripted({ calls: [["drop", { table: "a" }]] }, "Done.");
  const app = serve(agent({ model, tools: [drop] }), { store: shared().store, events: { keep: 60_000 } });
  const before = await eventsOf(post(app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", before);
  await time.tickAsync(3_600_000);
  const answers = [{ callId: "call_1", type: "approve" }];
  const rest = await eventsOf(post(app, `/sessions/${session}/answers`, { answers }));
  assertEquals(await eventsOf(follow(app, run)), [...before, ...rest]);
});
