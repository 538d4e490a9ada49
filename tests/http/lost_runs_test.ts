import { agent, type Middleware, type Model, type ServeOptions, type Session, tool, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { waiting } from "../support/halting.ts";
import { failingAppends } from "../support/events_journal.ts";
import { type Process, processOf, type Shared, shared } from "../support/process.ts";
import { first, type Framed, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { storedReason, storedRun } from "../support/stored_run.ts";
import { saving } from "../support/saving.ts";

const lease = 30_000;

const stuck = waiting("Half");

/** Records the reasons of cleanups. */
function watch(reasons: string[]): Middleware {
  return {
    name: "watch",
    async abort(ctx, next) {
      reasons.push(ctx.reason);
      await next();
    },
  };
}

/** A run in the middle of an answer, in its own process, and the events that its client received. */
async function middle(among: Shared = shared(), options: ServeOptions = {}) {
  const one = processOf(among, agent({ model: stuck }), options);
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k1" }));
  const received = framesOf(await pieces.until("Half"));
  const { run, session } = first("run.started", received);
  return { among, one, pieces, received, run, session };
}

/** Another process, whose model answers "Whole.". */
function other(among: Shared, options: ServeOptions = {}) {
  const reasons: string[] = [];
  const model = scripted("Whole.", "More.");
  const { app } = processOf(among, agent({ model, use: [watch(reasons)] }), options);
  return { app, model, reasons };
}

/** Returns the events of a run that a process emits. */
async function follow({ app }: Pick<Process, "app">, run: string, after = 0): Promise<Response> {
  return await app.request(`/runs/${run}`, { headers: { "last-event-id": `${after}` } });
}

/** Returns the events of a stream without comments. */
async function eventsOf(response: Response | Promise<Response>): Promise<Framed[]> {
  const { ok, status } = await response;
  if (!ok) throw new Error(`Cannot read an answer of status ${status}: ${await (await response).text()}`);
  return framesOf((await (await response).text()).replaceAll(":\n\n", ""));
}

/** Returns the status and the code of a refusal. */
async function codeOf(response: Response | Promise<Response>): Promise<readonly [number, string]> {
  const answer = await response;
  const { error } = await answer.json();
  return [answer.status, error.code];
}

function numbered(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

function ends(events: readonly Framed[]) {
  const { type, ...rest } = events.at(-1) ?? { type: "none" };
  return [type, "reason" in rest ? rest.reason : "text" in rest ? rest.text : undefined];
}

Deno.test("GET /runs/:id resumes a run whose process died, once its lease has expired", async () => {
  using time = new FakeTime();
  const { among, one, received, run, session } = await middle();
  one.kill();
  await advance(time, lease);
  const { app, model, reasons } = other(among);
  const rest = await advanceUntilSettled(time, eventsOf(follow({ app }, run, received.length)));
  assertEquals(rest.map(({ id }) => id), numbered(received.length + 1, received.length + rest.length));
  assertEquals(rest.map(({ type }) => type), [
    "run.started",
    "session.opened",
    "turn.started",
    "model.started",
    "text.delta",
    "model.finished",
    "turn.finished",
    "session.closed",
    "run.finished",
  ]);
  assertEquals([first("run.started", rest).run, first("run.started", rest).resumed, reasons], [run, true, ["lost"]]);
  assertEquals(model.requests.map(({ messages }) => messages.map(({ role }) => role)), [["user"]]);
  assertEquals(await eventsOf(follow({ app }, run)), [...received, ...rest]);
  const kept = await among.store.load(session);
  assertEquals([kept?.run, kept?.messages.length], [undefined, 2]);
});

Deno.test("GET /runs/:id follows a run in another process, and resumes it if its lease expires", async () => {
  using time = new FakeTime();
  const { among, one, received, run } = await middle();
  const { app, reasons } = other(among);
  const following = eventsOf(follow({ app }, run, received.length));
  await advance(time, 2 * lease); // no event arrives, but the process is alive
  assertEquals(reasons, []);
  one.kill();
  const rest = await advanceUntilSettled(time, following);
  assertEquals([ends(rest), reasons], [["run.finished", "Whole."], ["lost"]]);
  assertEquals(rest.map(({ id }) => id), numbered(received.length + 1, received.length + rest.length));
});

Deno.test("GET /runs/:id from several clients resumes a lost run once", async () => {
  using time = new FakeTime();
  const { among, one, run } = await middle();
  one.kill();
  await advance(time, lease);
  const two = [other(among), other(among)];
  const all = await advanceUntilSettled(
    time,
    Promise.all(two.flatMap(({ app }) => [1, 2, 3].map(() => eventsOf(follow({ app }, run))))),
  );
  assertEquals(two.map(({ model }) => model.requests.length).sort(), [0, 1]);
  for (const events of all) assertEquals(events, all[0]);
  assertEquals(ends(all[0] ?? []), ["run.finished", "Whole."]);
});

Deno.test("singleProcess: true resumes a lost run at once", async () => {
  using time = new FakeTime();
  const { among, one, received, run } = await middle(shared(), { singleProcess: true });
  assertEquals(ends(received), ["text.delta", "Half"]);
  one.kill();
  const { app, reasons } = other(among, { singleProcess: true });
  assertEquals(ends(await eventsOf(follow({ app }, run))), ["run.finished", "Whole."]);
  assertEquals(reasons, ["lost"]);
  await time.runMicrotasks();
});

Deno.test("POST /runs with the same key resumes the run that a dead process had begun", async () => {
  using time = new FakeTime();
  const { among, one, received } = await middle();
  one.kill();
  await advance(time, lease);
  const { app, reasons } = other(among);
  const events = await advanceUntilSettled(
    time,
    eventsOf(post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k1" })),
  );
  assertEquals(events.slice(0, received.length), received);
  assertEquals([ends(events), reasons], [["run.finished", "Whole."], ["lost"]]);
});

Deno.test("POST /runs with the same key begins the run that a dead process had not begun", async () => {
  using time = new FakeTime();
  const among = shared();
  for (const [key, point] of [["k1", "key"], ["k2", "claim"]] as const) {
    const doomed: { one?: Process } = {};
    const journal = saving(among.store, async (session, save) => {
      const isClaim = session.run !== undefined;
      if (isClaim !== (point === "claim")) return await save();
      doomed.one?.kill();
      return isClaim ? undefined : await save();
    });
    const one = processOf({ store: durable(journal) }, agent({ model: stuck }));
    doomed.one = one;
    void post(one.app, "/runs", { prompt: "Hi" }, { "idempotency-key": key });
    await advance(time, lease);
    await time.tickAsync();
    const { app, model } = other(among);
    const events = await advanceUntilSettled(
      time,
      eventsOf(post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": key })),
    );
    assertEquals([ends(events), model.requests.length], [["run.finished", "Whole."], 1]);
    assertEquals(events.map(({ id }) => id), numbered(1, events.length));
  }
});

/** A run whose process dies when it has saved a session that matches `when`. */
async function dying(when: (session: Session) => boolean, model: Model) {
  const among = shared();
  const doomed: { one?: Process } = {};
  const died = Promise.withResolvers<void>();
  const store = {
    ...among.store,
    journal: saving(among.store, async (session, save) => {
      const version = await save();
      if (when(session)) {
        doomed.one?.kill();
        died.resolve();
      }
      return version;
    }),
  };
  const one = processOf({ store }, agent({ model, tools: [drop] }));
  doomed.one = one;
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const received = framesOf(await pieces.until("session.opened"));
  await died.promise;
  return { among, ...first("run.started", received) };
}

Deno.test("GET /runs/:id returns the end of a run whose process died before it sent the end", async () => {
  using time = new FakeTime();
  const { among, run } = await dying((session) => session.last !== undefined, scripted("Hello!"));
  const { app, model } = other(among);
  assertEquals(ends(await eventsOf(follow({ app }, run))), ["run.finished", "Hello!"]);
  assertEquals([model.requests.length, (await follow({ app }, run, 10)).status], [0, 204]);
  await time.runMicrotasks();
});

Deno.test("GET /runs/:id returns run.paused if the process died before it sent the event", async () => {
  using time = new FakeTime();
  const isPaused = ({ run }: Session) => run?.exit?.status === "paused";
  for (const action of ["follow", "answer"]) {
    const { among, run, session } = await dying(isPaused, scripted({ calls: [["drop", { table: "a" }]] }));
    const { app } = processOf(among, agent({ model: scripted("Done."), tools: [drop] }));
    if (action === "follow") {
      const paused = first("run.paused", await eventsOf(follow({ app }, run)));
      assertEquals(paused.questions.map(({ callId }) => callId), ["call_1"]);
    }
    const answers = [{ callId: "call_1", type: "approve" }];
    const rest = await eventsOf(post(app, `/sessions/${session}/answers`, { answers }));
    assertEquals(ends(rest), ["run.finished", "Done."]);
    const all = await eventsOf(follow({ app }, run));
    assertEquals(all.map(({ id }) => id), numbered(1, all.length));
    assertEquals(all.filter(({ type }) => type === "run.paused").length, 1);
  }
  await time.runMicrotasks();
});

Deno.test("GET /runs/:id ends a paused run whose process died while it stopped the run", async () => {
  using time = new FakeTime();
  const among = shared();
  const calls = [["drop", { table: "a" }]] as const;
  const asking = processOf(among, agent({ model: scripted({ calls }), tools: [drop] }));
  const received = await eventsOf(post(asking.app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", received);
  const doomed: { one?: Process } = {};
  const store = {
    ...among.store,
    journal: saving(among.store, async (_, save) => {
      const version = await save();
      doomed.one?.kill();
      return version;
    }),
  };
  doomed.one = processOf({ store }, agent({ model: scripted(), tools: [drop] }));
  void post(doomed.one.app, `/runs/${run}/stop`);
  await advance(time, lease);
  assertEquals(storedReason(await among.store.load(session)), "stop");
  const { app, reasons } = other(among);
  const rest = await advanceUntilSettled(time, eventsOf(follow({ app }, run, received.length)));
  assertEquals([ends(rest), reasons], [["run.aborted", "stop"], ["stop"]]);
  assertEquals(rest.map(({ id }) => id), numbered(received.length + 1, received.length + rest.length));
});

Deno.test("GET /runs/:id returns a stored prompt whose process died before it sent the event", async () => {
  using time = new FakeTime();
  const among = shared();
  const doomed: { one?: Process } = {};
  const store = {
    ...among.store,
    journal: saving(among.store, async (session, save) => {
      const version = await save();
      if (session.messages.length > 0) doomed.one?.kill();
      return version;
    }),
  };
  doomed.one = processOf({ store }, agent({ model: scripted() }));
  const { run } = first(
    "run.started",
    framesOf(await piecesOf(await post(doomed.one.app, "/runs", { prompt: "Hi" })).until("session.opened")),
  );
  await advance(time, lease);
  const rest = await advanceUntilSettled(time, eventsOf(follow(other(among), run)));
  assertEquals(rest.slice(0, 5).map(({ type }) => type), [
    "run.started",
    "session.opened",
    "prompt.accepted",
    "run.started",
    "session.opened",
  ]);
  assertEquals(ends(rest), ["run.finished", "Whole."]);
});

Deno.test("GET /runs/:id answers 404 for a lost run whose session was deleted, and ends the stream of a client that follows it", async () => {
  using time = new FakeTime();
  const { among, one, received, run, session } = await middle();
  const { app } = other(among);
  const following = await follow({ app }, run, received.length);
  one.kill();
  await among.store.delete(session);
  assertEquals(await eventsOf(following), []);
  assertEquals(await codeOf(follow({ app }, run, received.length)), [404, "unknown"]);
  await time.runMicrotasks();
});

Deno.test("POST /runs ends the lost run that holds the session, and begins", async () => {
  using time = new FakeTime();
  const { among, one, received, run, session } = await middle();
  const { app, model, reasons } = other(among);
  const busy = `Cannot run session "${session}": another run has it`;
  assertEquals(await refusalOf(post(app, "/runs", { prompt: "Again", session })), [409, {
    code: "busy",
    message: busy,
  }]);
  one.kill();
  await advance(time, lease);
  const events = await advanceUntilSettled(time, eventsOf(post(app, "/runs", { prompt: "Again", session })));
  assertEquals([ends(events), model.requests.length, reasons], [["run.finished", "Whole."], 1, ["lost"]]);
  const before = await eventsOf(follow({ app }, run, received.length));
  assertEquals([before[0]?.id, ends(before)], [received.length + 1, ["run.aborted", "lost"]]);
});

Deno.test("POST /sessions/:id/answers sent again resumes a run that was lost after it had accepted them", async () => {
  using time = new FakeTime();
  const wait = tool({
    name: "drop",
    description: "Never drops a table",
    input: z.object({ table: z.string() }),
    ask: true,
    execute: () => new Promise<string>(() => {}),
  });
  for (const key of [undefined, "k1"]) {
    const among = shared();
    const asking = processOf(among, agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [wait] }));
    const before = await eventsOf(post(asking.app, "/runs", { prompt: "Drop a" }));
    const { session, run } = first("run.started", before);
    const headers = key === undefined ? {} : { "idempotency-key": key };
    const send = ({ app }: Pick<Process, "app">, type = "approve") =>
      post(app, `/sessions/${session}/answers`, { answers: [{ callId: "call_1", type }] }, headers);
    const received = framesOf(await piecesOf(await send(asking)).until("approval.decided"));
    asking.kill();
    await advance(time, lease);

    const two = processOf(among, agent({ model: scripted("Done."), tools: [wait] }));
    const unlike = key === undefined ? "unasked" : "key-reused";
    assertEquals(await codeOf(send(two, "deny")), [409, unlike]);
    const rest = await advanceUntilSettled(time, eventsOf(send(two)));
    assertEquals(ends(rest), ["run.finished", "Done."]);
    if (key !== undefined) assertEquals(rest.slice(0, received.length), received);
    const all = await eventsOf(follow(two, run));
    assertEquals(all.map(({ id }) => id), numbered(1, all.length));
    assertEquals(all.slice(before.length, before.length + received.length), received);
    assertEquals(first("tool.finished", all).result.status, "aborted");
  }
  await time.runMicrotasks();
});

Deno.test("POST /runs/:id/stop stops a run in another process, a lost run and a paused run", async () => {
  using time = new FakeTime();
  for (const dead of [false, true]) {
    const { among, one, pieces, received, run, session } = await middle();
    if (dead) {
      one.kill();
      await advance(time, lease);
    }
    const { app, model, reasons } = other(among);
    assertEquals((await advanceUntilSettled(time, post(app, `/runs/${run}/stop`))).status, 204);
    const rest = await advanceUntilSettled(time, eventsOf(follow({ app }, run, received.length)));
    const ended = [["run.aborted", "stop"], dead ? ["stop"] : [], 0]; // a run that works ends in its own process
    assertEquals([ends(rest), reasons, model.requests.length], ended);
    if (!dead) assertEquals(ends(framesOf(await pieces.rest())), ["run.aborted", "stop"]);
    assertEquals((await post(app, `/runs/${run}/stop`)).status, 204); // the run has stopped
    assertEquals((await among.store.load(session))?.run, undefined);
  }

  const among = shared();
  const asking = processOf(among, agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [drop] }));
  const { run, session } = first("run.started", await eventsOf(post(asking.app, "/runs", { prompt: "Drop a" })));
  assertEquals((await post(asking.app, `/runs/${run}/stop`)).status, 204);
  assertEquals(ends(await advanceUntilSettled(time, eventsOf(follow(asking, run)))), ["run.aborted", "stop"]);
  const answers = [{ callId: "call_1", type: "approve" }];
  const message = `Cannot resume session "${session}": it is not paused`;
  const late = refusalOf(post(asking.app, `/sessions/${session}/answers`, { answers }));
  assertEquals(await late, [409, { code: "not-paused", message }]);
});

/** A run whose process died, and whose lease has ended. */
async function lost(time: FakeTime) {
  const begun = await middle();
  begun.one.kill();
  await advance(time, lease);
  return begun;
}

Deno.test("POST /runs/:id/stop waits between its attempts if another process saves a lost run at each of them", async () => {
  using time = new FakeTime();
  const { among, run } = await lost(time);
  const { store } = among;
  const attempts: number[] = [];
  const contended = {
    ...store,
    journal: saving(store, async (session, save) => {
      if (session.lease?.closing !== "stop") return await save();
      attempts.push(Date.now());
      return attempts.length < 5 ? undefined : await save();
    }),
  };
  const { app, reasons } = other({ ...among, store: contended });
  assertEquals((await advanceUntilSettled(time, post(app, `/runs/${run}/stop`))).status, 204);
  assertEquals(new Set(attempts).size >= 5, true);
  const rest = await advanceUntilSettled(time, eventsOf(follow({ app }, run)));
  assertEquals([ends(rest), reasons], [["run.aborted", "stop"], ["stop"]]);
});

Deno.test("POST /runs/:id/stop of a lost run fails if another process has it at each attempt, and if its end cannot be stored", async () => {
  using time = new FakeTime();
  const { among: { store }, run } = await lost(time);
  const busy = other({ store: durable({ ...store.journal, append: () => Promise.resolve(undefined) }) });
  assertEquals(await advanceUntilSettled(time, refusalOf(post(busy.app, `/runs/${run}/stop`))), [409, {
    code: "busy",
    message: `Cannot stop run "${run}": another process changed it during each attempt`,
  }]);
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(`${error}`);
  const unstored = other({ store: durable(failingAppends(store, () => true)) }, { onError });
  assertEquals(await advanceUntilSettled(time, codeOf(post(unstored.app, `/runs/${run}/stop`))), [503, "unavailable"]);
  const slow = "SlowStoreError: The store is slow: `append` has not succeeded for 1000 ms";
  assertEquals(new Set(errors), new Set(["Error: The store is down", slow]));
});

Deno.test("POST /runs/:id/stop?rollback keeps nothing of a run that runs elsewhere, that was lost, or that waits for a person", async () => {
  using time = new FakeTime();
  for (const dead of [false, true]) {
    const among = shared();
    const before = processOf(among, agent({ model: scripted("Before.") }));
    const [{ session }] = [first("run.started", await eventsOf(post(before.app, "/runs", { prompt: "Hi" })))];
    const kept = (await among.store.load(session))?.messages;
    const one = processOf(among, agent({ model: stuck }));
    const pieces = piecesOf(await post(one.app, "/runs", { prompt: "More", session }));
    const { run } = first("run.started", framesOf(await pieces.until("Half")));
    if (dead) {
      one.kill();
      await advance(time, lease);
    }
    const { app, model } = other(among);
    assertEquals((await advanceUntilSettled(time, post(app, `/runs/${run}/stop?rollback`))).status, 204);
    const rest = await advanceUntilSettled(time, eventsOf(follow({ app }, run)));
    assertEquals([ends(rest), model.requests.length], [["run.aborted", "stop"], 0]);
    if (!dead) {
      await advance(time, lease); // until it notices
      await pieces.rest();
    }
    const after = await among.store.load(session);
    assertEquals([after?.run, after?.messages], [undefined, kept]);
  }

  const among = shared();
  const model = scripted("Before.", { calls: [["drop", { table: "a" }]] });
  const asking = processOf(among, agent({ model, tools: [drop] }));
  const { session } = first("run.started", await eventsOf(post(asking.app, "/runs", { prompt: "Hi" })));
  const kept = (await among.store.load(session))?.messages;
  const { run } = first("run.started", await eventsOf(post(asking.app, "/runs", { prompt: "Drop a", session })));
  assertEquals((await post(asking.app, `/runs/${run}/stop?rollback`)).status, 204);
  assertEquals(ends(await advanceUntilSettled(time, eventsOf(follow(asking, run)))), ["run.aborted", "stop"]);
  const after = await among.store.load(session);
  assertEquals([after?.run, after?.messages], [undefined, kept]);
});

Deno.test("a run that is stopped with rollback keeps nothing although its process dies before it ends", async () => {
  using time = new FakeTime();
  const among = shared();
  const kept = [user("Hi"), { role: "assistant", parts: [{ type: "text", text: "Before." }] }] as const;
  const before = processOf(among, agent({ model: scripted("Before.") }));
  const { session } = first("run.started", await eventsOf(post(before.app, "/runs", { prompt: "Hi" })));
  const hang = Promise.withResolvers<string>();
  const wait = tool({ name: "wait", description: "", input: z.object({}), execute: () => hang.promise });
  const one = processOf(among, agent({ model: scripted({ calls: [["wait", {}]] }), tools: [wait] }));
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "More", session }));
  const { run } = first("run.started", framesOf(await pieces.until("tool.started")));
  assertEquals((await post(one.app, `/runs/${run}/stop?rollback`)).status, 204);
  await advance(time, lease / 2); // its lease is renewed, and says that the run is being stopped
  one.kill();
  await advance(time, 2 * lease);
  const { app } = other(among);
  assertEquals(ends(await advanceUntilSettled(time, eventsOf(follow({ app }, run)))), ["run.aborted", "stop"]);
  const after = await among.store.load(session);
  assertEquals([after?.run, after?.messages], [undefined, kept]);
  hang.resolve("late");
  await pieces.rest();
});

Deno.test("POST /runs/:id/stop answers 404 for unknown runs", async () => {
  const { app } = other(shared());
  for (const run of ["r1", "key:1", "__proto__"]) {
    const message = `Cannot stop run "${run}": it does not run`;
    assertEquals(await refusalOf(post(app, `/runs/${run}/stop`)), [404, { code: "unknown", message }]);
  }
});

Deno.test("a run whose session another process takes at its end does not change the session", async () => {
  const { store } = shared();
  const journal = saving(store, async (session, save) => {
    const kept = session.last && await store.load(session.id);
    if (kept) await store.save(kept);
    return await save();
  });
  const { app } = processOf({ store: durable(journal) }, agent({ model: scripted("Done.") }));
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const received = framesOf(await pieces.rest());
  const { session, run } = first("run.started", received);
  const kept = await store.load(session);
  assertEquals([storedRun(kept), kept?.last], [{ id: run, status: "running" }, undefined]);
  assertEquals(received.some(({ type }) => type === "run.finished"), false);
});

Deno.test("POST /runs/:id/stop ends a run that pauses at this moment", async () => {
  using time = new FakeTime();
  const among = shared();
  const [pausing, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ended = Promise.withResolvers<void>();
  const store = {
    ...among.store,
    journal: saving(among.store, async (session, save) => {
      if (storedRun(session)?.status === "paused") {
        pausing.resolve();
        await go.promise;
      }
      const version = await save();
      if (session.last) ended.resolve();
      return version;
    }),
  };
  const asking = agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [drop] });
  const { app } = processOf({ store }, asking);
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("session.opened")));
  await pausing.promise;
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  go.resolve();
  await advanceUntilSettled(time, Promise.all([pieces.rest(), ended.promise]));
  await app.settled();
  assertEquals(ends(await eventsOf(follow({ app }, run))), ["run.aborted", "stop"]);
  assertEquals(storedRun(await among.store.load(session)), undefined);
});
