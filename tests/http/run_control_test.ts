/**
 * Requests to a run (messages, finish, stop, compact), and stops of paused runs and of runs in other processes.
 */
import { agent, compacted, type Event, memory, type Middleware, serve, type Session, tool, user } from "@jizai/jizai";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { halting } from "../support/halting.ts";
import { failingAppends } from "../support/events_journal.ts";
import { processOf, shared } from "../support/process.ts";
import { type App, eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { storedRun } from "../support/stored_run.ts";
import { lines } from "../support/transcript_lines.ts";
import { saving } from "../support/saving.ts";

/** A served run whose tool waits until it is released. */
async function working(owner?: "ada") {
  const go = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  const work = tool({
    name: "work",
    description: "Works",
    input: z.object({}),
    execute: () => {
      begun.resolve();
      return go.promise;
    },
  });
  const model = scripted({ calls: [["work", {}], ["work", {}]] }, "Done.");
  const made = agent({ model, tools: [work], limits: { parallel: 1 } });
  const app: App = serve(made, owner ? { owner: (c) => c.req.header("x-user") } : {});
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Go" }, owner && { "x-user": owner }));
  const frames = await pieces.until("run.started");
  const { run } = first("run.started", framesOf(frames));
  const more = frames.includes(`"tool.started"`) ? "" : await pieces.until(`"tool.started"`);
  await begun.promise;
  const rest = async () => {
    go.resolve("worked");
    return framesOf(frames + more + await pieces.rest());
  };
  return { app, run, model, rest };
}

Deno.test("serve() delivers a message to a run, as text or parts, at the requested place", async () => {
  const { app, run, model, rest } = await working();
  const image = { type: "media", mediaType: "image/png", data: "iVBORw0KGgo=" };
  const sent = [
    await post(app, `/runs/${run}/messages`, { text: "Make it red" }),
    await post(app, `/runs/${run}/messages`, { parts: [image], after: "calls" }),
  ];
  assertEquals(sent.map(({ status }) => status), [202, 202]);
  const events = await rest();
  const messages = [
    { role: "user" as const, parts: [{ type: "text" as const, text: "Make it red" }] },
    { role: "user", parts: [image] },
  ];
  assertEquals(first("steering.injected", events).messages as unknown, messages);
  assertEquals(lines(model.requests[1]?.messages ?? []), [
    "user Go",
    "call work work",
    "ok worked",
    "skipped Skipped due to queued user message.",
    "user Make it red",
  ]);
});

Deno.test("POST /runs/:id/finish makes a run finish with one more answer", async () => {
  const { app, run, model, rest } = await working();
  assertEquals((await post(app, `/runs/${run}/finish`)).status, 204);
  const { status, reason, text } = first("run.finished", await rest());
  assertEquals([status, reason, text, model.requests[1]?.tools], ["done", "interrupted", "Done.", []]);
});

Deno.test("POST /runs/:id/finish is refused if another process has taken the session", async () => {
  const store = durable(memory().journal);
  const gate = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted({ text: "One.", before: () => gate.promise }) }), { store });
  const { run, session } = await (await post(app, "/runs", { prompt: "Go" }, { prefer: "respond-async" })).json();
  const stored = await store.load(session);
  if (stored) await store.save({ ...stored, lease: { until: Date.now() + 60_000 } }); // by the other process
  assertEquals(await refusalOf(post(app, `/runs/${run}/finish`)), [409, {
    code: "busy",
    message: `Cannot finish run "${run}": it is ending`,
  }]);
  gate.resolve();
  await app.settled();
});

Deno.test("a request to finish that was answered is kept if the process of the run dies", async () => {
  using time = new FakeTime();
  const among = shared();
  const begun = Promise.withResolvers<void>();
  const wait = tool({
    name: "wait",
    description: "Waits",
    input: z.object({}),
    execute() {
      begun.resolve();
      return new Promise(() => {});
    },
  });
  const one = processOf(among, agent({ model: scripted({ calls: [["wait", {}]] }), tools: [wait] }));
  const { run } = await (await post(one.app, "/runs", { prompt: "Go" }, { prefer: "respond-async" })).json();
  await begun.promise;
  assertEquals((await post(one.app, `/runs/${run}/finish`)).status, 204);
  one.kill();
  const model = scripted("Done.");
  const two = processOf(among, agent({ model, tools: [wait] }), { singleProcess: true });
  const { runs, over } = await two.app.recover();
  await advanceUntilSettled(time, over);
  assertEquals([runs, model.requests.map(({ tools }) => tools)], [[run], [[]]]);
});

Deno.test("POST /runs/:id/stop?rollback stops a run and removes its messages", async () => {
  const { app, run, rest } = await working();
  assertEquals((await post(app, `/runs/${run}/stop?rollback`)).status, 204);
  const { session } = first("run.started", await rest());
  assertEquals(await (await app.request(`/sessions/${session}`)).json(), { id: session, messages: [] });
});

Deno.test("POST /runs/:id/stop?rollback=false stops a run and keeps its messages, and other values are refused", async () => {
  const { app, run, rest } = await working();
  const message = "Cannot read rollback: expected true or false";
  const refused = await refusalOf(post(app, `/runs/${run}/stop?rollback=no`));
  assertEquals(refused, [400, { code: "invalid", field: "rollback", message }]);
  assertEquals((await post(app, `/runs/${run}/stop?rollback=false`)).status, 204);
  const { session } = first("run.started", await rest());
  const { messages } = await (await app.request(`/sessions/${session}`)).json();
  assertEquals(lines(messages)[0], "user Go");
});

Deno.test("a RangeError of an input hook is a failure of the request, not a queue that is full", async () => {
  const { model, begun, release } = halting();
  const reported: unknown[] = [];
  const reviewer: Middleware = {
    name: "reviewer",
    input(ctx, next) {
      if (ctx.source === "steering") throw new RangeError("a bug in the hook");
      return next();
    },
  };
  const app = serve(agent({ model, use: [reviewer] }), {
    onError: (error) => reported.push(error instanceof Error && error.message),
  });
  const response = await post(app, "/runs", { prompt: "Go" });
  await begun;
  const { run } = first("run.started", framesOf(await piecesOf(response).until("model.started")));
  const [status] = await refusalOf(post(app, `/runs/${run}/messages`, { text: "Hi" }));
  assertEquals([status, reported], [500, ["a bug in the hook"]]);
  release();
  await app.settled();
});

Deno.test("serve() names the invalid field of a message", async () => {
  const { app, run, rest } = await working();
  const send = (body: unknown) => refusalOf(post(app, `/runs/${run}/messages`, body));
  const wrong = (field: string, expected: string): readonly [number, unknown] => [
    400,
    { code: "invalid", field, message: `Cannot read ${field}: expected ${expected}` },
  ];
  assertEquals(await send({}), wrong("text", "a string"));
  assertEquals(await send({ text: "Hi", parts: [] }), wrong("parts", "a text or parts, not both"));
  assertEquals(await send({ text: "Hi", after: "now" }), wrong("after", 'one of "batch", "calls"'));
  for (let index = 0; index < 10; index++) await post(app, `/runs/${run}/messages`, { text: "Hi" });
  const message = `Cannot send a message to run "${run}": too many wait`;
  assertEquals(await send({ text: "Hi" }), [409, { code: "full", message }]);
  await rest();
  assertEquals(await send({ text: "Hi" }), [404, {
    code: "unknown",
    message: `Cannot send a message to run "${run}": it does not run`,
  }]);
});

Deno.test("serve() lets only its owner control a run", async () => {
  const { app, run, rest } = await working("ada");
  const [theirs, none] = [run, "none"].map((id) =>
    ["messages", "finish"].map((what) =>
      refusalOf(post(app, `/runs/${id}/${what}`, { text: "Hi" }, { "x-user": "bob" }))
    )
  );
  const named = (refusals: readonly unknown[]) => JSON.parse(JSON.stringify(refusals).replaceAll(run, "none"));
  assertEquals(named(await Promise.all(theirs ?? [])), await Promise.all(none ?? []));
  assertEquals((await post(app, `/runs/${run}/finish`, undefined, { "x-user": "ada" })).status, 204);
  await rest();
});

Deno.test("POST /sessions/:id/compact compacts a session without a run", async () => {
  const made = agent({
    model: scripted("One.", "Two."),
    use: [compaction({ summarize: false }), {
      name: "brief",
      compact: ({ instructions }) => Promise.resolve(compacted([user(`Brief: ${instructions}`)])),
    }],
  });
  const store = memory();
  const app: App = serve(made, { store });
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "1" })));
  const events = await eventsOf(post(app, `/sessions/${session}/compact`, { instructions: "names" }));
  const reported = events.flatMap((event) => event.type === "compact.finished" ? [event.trigger, event.status] : []);
  assertEquals([reported, first("run.finished", events).status], [["manual", "compacted"], "done"]);
  assertEquals(lines((await store.load(session))?.messages ?? []), ["user Brief: names"]);
});

Deno.test("POST /sessions/:id/compact refuses unknown sessions, and sessions with a run", async () => {
  const { app, rest } = await working();
  assertEquals(await refusalOf(post(app, "/sessions/none/compact", {})), [404, {
    code: "unknown",
    message: 'Cannot compact session "none": there is none',
  }]);
  assertEquals((await app.request("/sessions/none/compact")).status, 405);
  await rest();
});

// Stops of runs that do not end where they were stopped.

/** An agent that asks before it drops a table. */
const asking = (...use: Middleware[]) =>
  agent({ model: scripted({ calls: [{ id: "c1", name: "drop", input: { table: "a" } }] }), tools: [drop], use });

/** Returns the last event of a session that no run has, and the reason of its stop. */
function endOf(session: Session | undefined) {
  const event: Event | undefined = storedRun(session) ? undefined : session?.last?.event;
  return event?.type === "run.aborted" ? [event.type, event.reason] : event?.type;
}

/** A store that saves no pause before `go` is called. `pausing` resolves when a pause is to be saved. */
function pausesLate(inner = durable(memory().journal)) {
  const [pausing, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const store = {
    ...inner,
    journal: saving(inner, async (session, save) => {
      if (storedRun(session)?.status === "paused") {
        pausing.resolve();
        await go.promise;
      }
      return await save();
    }),
  };
  return { store, pausing: pausing.promise, go: go.resolve };
}

Deno.test("POST /runs/:id/stop ends a run that pauses at this moment", async () => {
  using time = new FakeTime();
  const { store, pausing, go } = pausesLate();
  const app = serve(asking(), { store });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("session.opened")));
  await pausing;
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  go();
  await advanceUntilSettled(time, pieces.rest());
  await advanceUntilSettled(time, app.settled());
  assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
});

Deno.test("two requests that stop a run that pauses at this moment end it once", async () => {
  using time = new FakeTime();
  const { store, pausing, go } = pausesLate();
  const [errors, reasons]: [unknown[], string[]] = [[], []];
  const watch: Middleware = {
    name: "watch",
    async abort({ reason }, next) {
      reasons.push(reason);
      await next();
    },
  };
  const app = serve(asking(watch), { store, onError: (error) => void errors.push(error) });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("session.opened")));
  await pausing;
  for (let stop = 0; stop < 2; stop++) assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  go();
  await advanceUntilSettled(time, pieces.rest());
  await advanceUntilSettled(time, app.settled());
  assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
  assertEquals([errors, reasons], [[], ["stop"]]);
});

Deno.test("a run that was stopped while it saved its pause ends before settled() resolves, also in a shutdown, and its end is reported", async () => {
  using time = new FakeTime();
  const among = shared();
  const { store, pausing, go } = pausesLate(among.store);
  const shutdown = new AbortController();
  const reported: string[] = [];
  const { app } = processOf({ ...among, store }, asking(), {
    signal: shutdown.signal,
    onEnd: ({ event }) => void reported.push(event.type),
  });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("session.opened")));
  await pausing;
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  shutdown.abort();
  go();
  await advanceUntilSettled(time, app.settled());
  assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
  assertEquals(reported.toSorted(), ["run.aborted", "run.paused"]);
  await pieces.rest();
});

Deno.test("POST /runs/:id/stop ends a run whose answers cannot be stored at this moment", async () => {
  using time = new FakeTime();
  const among = shared();
  const failed = Promise.withResolvers<void>();
  let down = false;
  const journal = failingAppends(among.store, () => {
    if (down) failed.resolve();
    return down;
  });
  const { app } = processOf({ store: durable(journal) }, asking(), { onError() {} });
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  await app.settled();
  down = true;
  const answered = post(app, `/sessions/${session}/answers`, { answers: [{ callId: "c1", type: "approve" }] });
  await failed.promise;
  assertEquals((await advanceUntilSettled(time, answered)).status, 503);
  down = false;
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  await advanceUntilSettled(time, app.settled());
  assertEquals(endOf(await among.store.load(session)), ["run.aborted", "stop"]);
});

Deno.test("POST /runs/:id/stop ends a run that another process has taken over", async () => {
  using time = new FakeTime();
  const among = shared();
  const [here, there] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  let cut = false;
  const { journal } = among.store;
  const append: typeof journal.append = (...given) =>
    cut ? Promise.reject(new Error("The store is not reached")) : journal.append(...given);
  const workingUntil = (done: Promise<string>) => {
    const work = tool({ name: "work", description: "", input: z.object({}), idempotent: true, execute: () => done });
    return agent({ model: scripted({ calls: [["work", {}]] }, "Done."), tools: [work], limits: { grace: 60_000 } });
  };
  const one = processOf({ ...among, store: durable({ ...journal, append }) }, workingUntil(here.promise), {
    onError() {},
  });
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Go" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("tool.started")));
  cut = true;
  await advance(time, 31_000);
  const two = processOf(among, workingUntil(there.promise), { onError() {} });
  const { runs } = await advanceUntilSettled(time, two.app.recover());
  assertEquals(runs, [run]);
  cut = false;
  await advance(time, 15_000); // the first process finds out
  assertEquals((await post(one.app, `/runs/${run}/stop`)).status, 204);
  here.resolve("Late");
  await advanceUntilSettled(time, one.app.settled());
  assertEquals(endOf(await among.store.load(session)), ["run.aborted", "stop"]);
  there.resolve("Later");
  await advanceUntilSettled(time, two.app.settled());
  assertEquals(endOf(await among.store.load(session)), ["run.aborted", "stop"]);
  await pieces.rest();
});

/** The requests that stop the run of a session, with the name of the session. */
const stops = {
  "DELETE /chat/:id/stream": (app: App, session: string) =>
    app.request(`/chat/${session}/stream`, { method: "DELETE" }),
  "POST /runs/:id/stop?session=": (app: App, session: string, run: string) =>
    post(app, `/runs/${run}/stop?session=${session}`),
};

for (const [named, stop] of Object.entries(stops)) {
  Deno.test(`${named} ends a paused run, in memory and in a durable store`, async () => {
    for (const store of [memory(), shared().store]) {
      const app = serve(asking(), { store, wires: [aiSdkUi()] });
      const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
      assertEquals(storedRun(await store.load(session))?.status, "paused");
      assertEquals((await stop(app, session, run)).status, 204);
      await app.settled();
      assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
    }
  });

  Deno.test(`${named} ends a run that another process executes`, async () => {
    using time = new FakeTime();
    const store = durable(memory().journal);
    const { model, begun } = halting();
    const here = serve(agent({ model }), { store });
    const there = serve(agent({ model: scripted() }), { store, wires: [aiSdkUi()] });
    const response = await post(here, "/runs", { prompt: "Hi" }, { prefer: "respond-async" });
    const { run, session } = await response.json();
    await begun;
    assertEquals((await stop(there, session, run)).status, 204);
    await there.settled();
    await advanceUntilSettled(time, here.settled()); // it has received the stop
    assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
  });
}

Deno.test("POST /runs/:id/stop answers 404 for a run that there is not, also if it names a session", async () => {
  const store = memory();
  const app = serve(asking(), { store });
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  for (const path of [`/runs/${run.slice(0, -1)}2/stop`, `/runs/other/stop`, `/runs/other/stop?session=${session}`]) {
    assertEquals((await post(app, path)).status, 404);
  }
  assertEquals(storedRun(await store.load(session))?.status, "paused");
});
