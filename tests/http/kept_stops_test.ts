/**
 * Stops of runs that do not end where they were stopped.
 *
 * @module
 */
import { agent, type Event, memory, type Middleware, serve, type Session, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { memoryLog } from "@jizai/jizai/session/log";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, shared } from "../support/process.ts";
import { halting } from "../support/halting.ts";
import { type App, eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";
import { storedRun } from "../support/stored_run.ts";

/** An agent that asks before it drops a table. */
const asking = (...use: Middleware[]) =>
  agent({ model: scripted({ calls: [{ id: "c1", name: "drop", input: { table: "a" } }] }), tools: [drop], use });

/** Returns the last event of a session that no run has, and the reason of its stop. */
function endOf(session: Session | undefined) {
  const event: Event | undefined = storedRun(session) ? undefined : session?.last?.event;
  return event?.type === "run.aborted" ? [event.type, event.reason] : event?.type;
}

/** A store that saves no pause before `go` is called. `pausing` resolves when a pause is to be saved. */
function pausesLate(inner = durable(memory())) {
  const [pausing, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const store = {
    ...inner,
    async save(session: Session) {
      if (storedRun(session)?.status === "paused") {
        pausing.resolve();
        await go.promise;
      }
      return await inner.save(session);
    },
  };
  return { store, pausing: pausing.promise, go: go.resolve };
}

Deno.test("POST /runs/:id/stop ends a run that pauses at this moment, without a log", async () => {
  using time = new FakeTime();
  const { store, pausing, go } = pausesLate();
  const app = serve(asking(), { store });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("model.started")));
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
  const { run, session } = first("run.started", framesOf(await pieces.until("model.started")));
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
  const { store, pausing, go } = pausesLate(durable(among.store));
  const shutdown = new AbortController();
  const reported: string[] = [];
  const { app } = processOf({ ...among, store }, asking(), {
    signal: shutdown.signal,
    onEnd: ({ event }) => void reported.push(event.type),
  });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("model.started")));
  await pausing;
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  shutdown.abort();
  go();
  await advanceUntilSettled(time, app.settled());
  assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
  assertEquals(reported.toSorted(), ["run.aborted", "run.paused"]);
  await pieces.rest();
});

Deno.test("POST /runs/:id/stop ends a run whose answers cannot be logged at this moment", async () => {
  using time = new FakeTime();
  const among = shared();
  const failed = Promise.withResolvers<void>();
  let down = false;
  const append: typeof among.log.append = async (...given) => {
    if (!down) return await among.log.append(...given);
    failed.resolve();
    throw new Error("The log is down");
  };
  const { app } = processOf({ ...among, log: { ...among.log, append } }, asking(), { onError() {} });
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  await app.settled();
  down = true;
  const answered = post(app, `/sessions/${session}/answers`, { answers: [{ callId: "c1", type: "approve" }] });
  await failed.promise;
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  assertEquals((await advanceUntilSettled(time, answered)).status, 503);
  await advanceUntilSettled(time, app.settled());
  assertEquals(endOf(await among.store.load(session)), ["run.aborted", "stop"]);
});

Deno.test("POST /runs/:id/stop ends a run that another process has taken over", async () => {
  using time = new FakeTime();
  const among = shared();
  const [here, there] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  let cut = false;
  const touch: typeof among.store.touch = (...given) =>
    cut ? Promise.reject(new Error("The store is not reached")) : among.store.touch(...given);
  const workingUntil = (done: Promise<string>) => {
    const work = tool({ name: "work", description: "", input: z.object({}), idempotent: true, execute: () => done });
    return agent({ model: scripted({ calls: [["work", {}]] }, "Done."), tools: [work], limits: { grace: 60_000 } });
  };
  const one = processOf({ ...among, store: { ...among.store, touch } }, workingUntil(here.promise), { onError() {} });
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
  Deno.test(`${named} ends a paused run, with and without a log`, async () => {
    for (const options of [{}, { log: memoryLog() }]) {
      const store = memory();
      const app = serve(asking(), { store, wires: [aiSdkUi()], ...options });
      const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
      assertEquals(storedRun(await store.load(session))?.status, "paused");
      assertEquals((await stop(app, session, run)).status, 204);
      await app.settled();
      assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
    }
  });

  Deno.test(`${named} ends a run that another process executes, without a log`, async () => {
    using time = new FakeTime();
    const store = durable(memory());
    const { model, begun } = halting();
    const here = serve(agent({ model }), { store });
    const there = serve(agent({ model: scripted() }), { store, wires: [aiSdkUi()] });
    const response = await post(here, "/runs", { prompt: "Hi" }, { prefer: "respond-async" });
    const { run, session } = await response.json();
    await begun;
    assertEquals((await stop(there, session, run)).status, 204);
    await there.settled();
    assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
    await advanceUntilSettled(time, here.settled()); // it has lost its session
    assertEquals(endOf(await store.load(session)), ["run.aborted", "stop"]);
  });
}

Deno.test("POST /runs/:id/stop without a log answers 404 if it does not name the session of the run", async () => {
  const store = memory();
  const app = serve(asking(), { store });
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  for (const path of [`/runs/${run}/stop`, `/runs/${run}/stop?session=other`, `/runs/other/stop?session=${session}`]) {
    assertEquals((await post(app, path)).status, 404);
  }
  assertEquals(storedRun(await store.load(session))?.status, "paused");
});
