import { agent, type Middleware, type Model, type ServeOptions, type Session, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { type Process, processOf, type Shared, shared } from "../support/process.ts";
import { first, type Framed, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { storedReason, storedRun } from "../support/stored_run.ts";

const lease = 30_000;

/** A model that says "Half", and nothing more until it is told to stop. */
const stuck: Model = {
  id: "stuck",
  async *stream(_request, { signal }) {
    yield [{ type: "text", text: "Half" }];
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  },
};

/** Writes down why runs are cleaned up. */
function watch(reasons: string[]): Middleware {
  return {
    name: "watch",
    async abort(ctx, next) {
      reasons.push(ctx.reason);
      await next();
    },
  };
}

/** A run in the middle of an answer, in a process of its own, and what was heard of it. */
async function middle(among: Shared = shared(), options: ServeOptions = {}) {
  const one = processOf(among, agent({ model: stuck }), options);
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k1" }));
  const heard = framesOf(await pieces.until("Half"));
  const { run, session } = first("run.started", heard);
  return { among, one, pieces, heard, run, session };
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

/** The events of a stream, read to its end; comments are left out. */
async function eventsOf(response: Response | Promise<Response>): Promise<Framed[]> {
  const { ok, status } = await response;
  if (!ok) throw new Error(`Cannot read an answer of status ${status}: ${await (await response).text()}`);
  return framesOf((await (await response).text()).replaceAll(":\n\n", ""));
}

/** The status and the code of a refusal. */
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

Deno.test("GET /runs/:id goes on with a run whose process died, once its lease is over", async () => {
  using time = new FakeTime();
  const { among, one, heard, run, session } = await middle();
  one.kill();
  await advance(time, lease);
  const { app, model, reasons } = other(among);
  const rest = await advanceUntilSettled(time, eventsOf(follow({ app }, run, heard.length)));
  assertEquals(rest.map(({ id }) => id), numbered(heard.length + 1, heard.length + rest.length));
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
  assertEquals(await eventsOf(follow({ app }, run)), [...heard, ...rest]);
  const kept = await among.store.load(session);
  assertEquals([kept?.run, kept?.messages.length], [undefined, 2]);
});

Deno.test("GET /runs/:id follows a run that runs elsewhere, and goes on with it where nothing more comes", async () => {
  using time = new FakeTime();
  const { among, one, heard, run } = await middle();
  const { app, reasons } = other(among);
  const following = eventsOf(follow({ app }, run, heard.length));
  await advance(time, 2 * lease); // nothing comes, but it lives
  assertEquals(reasons, []);
  one.kill();
  const rest = await advanceUntilSettled(time, following);
  assertEquals([ends(rest), reasons], [["run.finished", "Whole."], ["lost"]]);
  assertEquals(rest.map(({ id }) => id), numbered(heard.length + 1, heard.length + rest.length));
});

Deno.test("GET /runs/:id, asked by many at once, goes on with a lost run once", async () => {
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
  const { among, one, heard, run } = await middle(shared(), { singleProcess: true });
  assertEquals(ends(heard), ["text.delta", "Half"]);
  one.kill();
  const { app, reasons } = other(among, { singleProcess: true });
  assertEquals(ends(await eventsOf(follow({ app }, run))), ["run.finished", "Whole."]);
  assertEquals(reasons, ["lost"]);
  await time.runMicrotasks();
});

Deno.test("POST /runs with the same key resumes the run that a dead process had begun", async () => {
  using time = new FakeTime();
  const { among, one, heard } = await middle();
  one.kill();
  await advance(time, lease);
  const { app, reasons } = other(among);
  const events = await advanceUntilSettled(
    time,
    eventsOf(post(app, "/runs", { prompt: "Hi" }, { "idempotency-key": "k1" })),
  );
  assertEquals(events.slice(0, heard.length), heard);
  assertEquals([ends(events), reasons], [["run.finished", "Whole."], ["lost"]]);
});

Deno.test("POST /runs with the same key begins the run that a dead process had not begun", async () => {
  using time = new FakeTime();
  const among = shared();
  for (const [key, point] of [["k1", "claim"], ["k2", "record"]] as const) {
    const doomed: { one?: Process } = {};
    const one = processOf({
      store: {
        ...among.store,
        save: async (session: Session) => {
          if (point === "claim") doomed.one?.kill();
          return await among.store.save(session);
        },
      },
      log: {
        ...among.log,
        append: async (run, addition) => {
          if (point === "record" && !run.startsWith("key:")) {
            doomed.one?.kill();
            return false;
          }
          return await among.log.append(run, addition);
        },
      },
    }, agent({ model: stuck }));
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

/** A run whose process dies while it saves or records what `when` says. */
async function dying(when: (session: Session) => boolean, model: Model) {
  const among = shared();
  const doomed: { one?: Process } = {};
  const died = Promise.withResolvers<void>();
  const store = {
    ...among.store,
    async save(session: Session) {
      const version = await among.store.save(session);
      if (when(session)) {
        doomed.one?.kill();
        died.resolve();
      }
      return version;
    },
  };
  const one = processOf({ store, log: among.log }, agent({ model, tools: [drop] }));
  doomed.one = one;
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const heard = framesOf(await pieces.until("model.started"));
  await died.promise;
  return { among, heard, ...first("run.started", heard) };
}

Deno.test("GET /runs/:id tells how a run ended whose process died before it said so", async () => {
  using time = new FakeTime();
  const { among, run } = await dying((session) => session.last !== undefined, scripted("Hello!"));
  const { app, model } = other(among);
  assertEquals(ends(await eventsOf(follow({ app }, run))), ["run.finished", "Hello!"]);
  assertEquals([model.requests.length, (await follow({ app }, run, 10)).status], [0, 204]);
  await time.runMicrotasks();
});

Deno.test("GET /runs/:id returns run.paused if the process died before it logged the event", async () => {
  using time = new FakeTime();
  const isPaused = ({ run }: Session) => run?.exit?.status === "paused";
  for (const way of ["follow", "answer"]) {
    const { among, run, session } = await dying(isPaused, scripted({ calls: [["drop", { table: "a" }]] }));
    const { app } = processOf(among, agent({ model: scripted("Done."), tools: [drop] }));
    if (way === "follow") {
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

Deno.test("GET /runs/:id ends a paused run whose process died as it stopped it", async () => {
  using time = new FakeTime();
  const among = shared();
  const calls = [["drop", { table: "a" }]] as const;
  const asking = processOf(among, agent({ model: scripted({ calls }), tools: [drop] }));
  const heard = await eventsOf(post(asking.app, "/runs", { prompt: "Drop a" }));
  const { run, session } = first("run.started", heard);
  const doomed: { one?: Process } = {};
  const store = {
    ...among.store,
    async save(session: Session) {
      const version = await among.store.save(session);
      doomed.one?.kill();
      return version;
    },
  };
  doomed.one = processOf({ store, log: among.log }, agent({ model: scripted(), tools: [drop] }));
  void post(doomed.one.app, `/runs/${run}/stop`);
  await advance(time, lease);
  assertEquals(storedReason(await among.store.load(session)), "stop");
  const { app, reasons } = other(among);
  const rest = await advanceUntilSettled(time, eventsOf(follow({ app }, run, heard.length)));
  assertEquals([ends(rest), reasons], [["run.aborted", "stop"], ["stop"]]);
  assertEquals(rest.map(({ id }) => id), numbered(heard.length + 1, heard.length + rest.length));
});

Deno.test("GET /runs/:id tells of a prompt that was kept, where the process died before it said so", async () => {
  using time = new FakeTime();
  const among = shared();
  const doomed: { one?: Process } = {};
  const store = {
    ...among.store,
    async save(session: Session) {
      const version = await among.store.save(session);
      if (session.messages.length > 0) doomed.one?.kill();
      return version;
    },
  };
  doomed.one = processOf({ store, log: among.log }, agent({ model: scripted() }));
  const { run } = first(
    "run.started",
    framesOf(await piecesOf(await post(doomed.one.app, "/runs", { prompt: "Hi" })).until("session.opened")),
  );
  await advance(time, lease);
  const rest = await advanceUntilSettled(time, eventsOf(follow(other(among), run)));
  assertEquals(rest.slice(0, 5).map(({ type }) => type), [
    "run.started",
    "session.opened",
    "run.started",
    "session.opened",
    "prompt.accepted",
  ]);
  assertEquals(ends(rest), ["run.finished", "Whole."]);
});

Deno.test("GET /runs/:id says of a run that its session does not know that it was lost", async () => {
  using time = new FakeTime();
  const { among, one, heard, run, session } = await middle(shared(), { singleProcess: true });
  one.kill();
  await among.store.delete(session);
  const { app } = other(among);
  assertEquals(ends(await eventsOf(follow({ app }, run, heard.length))), ["run.aborted", "lost"]);
  await time.runMicrotasks();
});

Deno.test("POST /runs ends the lost run that has the session, and begins", async () => {
  using time = new FakeTime();
  const { among, one, heard, run, session } = await middle();
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
  const before = await eventsOf(follow({ app }, run, heard.length));
  assertEquals([before[0]?.id, ends(before)], [heard.length + 1, ["run.aborted", "lost"]]);
});

Deno.test("POST /sessions/:id/answers, sent again, goes on with a run that was lost after it had taken them", async () => {
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
    const heard = framesOf(await piecesOf(await send(asking)).until("approval.decided"));
    asking.kill();
    await advance(time, lease);

    const two = processOf(among, agent({ model: scripted("Done."), tools: [wait] }));
    const unlike = key === undefined ? "unasked" : "key-reused";
    assertEquals(await codeOf(send(two, "deny")), [409, unlike]);
    const rest = await advanceUntilSettled(time, eventsOf(send(two)));
    assertEquals(ends(rest), ["run.finished", "Done."]);
    if (key !== undefined) assertEquals(rest.slice(0, heard.length), heard);
    const all = await eventsOf(follow(two, run));
    assertEquals(all.map(({ id }) => id), numbered(1, all.length));
    assertEquals(all.slice(before.length, before.length + heard.length), heard);
    assertEquals(first("tool.finished", all).result.status, "aborted");
  }
  await time.runMicrotasks();
});

Deno.test("POST /runs/:id/stop stops a run that runs elsewhere, that was lost, or that waits for a person", async () => {
  using time = new FakeTime();
  for (const dead of [false, true]) {
    const { among, one, pieces, heard, run, session } = await middle();
    if (dead) {
      one.kill();
      await advance(time, lease);
    }
    const { app, model, reasons } = other(among);
    assertEquals((await advanceUntilSettled(time, post(app, `/runs/${run}/stop`))).status, 204);
    const rest = await advanceUntilSettled(time, eventsOf(follow({ app }, run, heard.length)));
    assertEquals([ends(rest), reasons, model.requests.length], [["run.aborted", "stop"], ["stop"], 0]);
    if (!dead) {
      await advance(time, lease); // until it notices
      await pieces.rest();
    }
    assertEquals((await post(app, `/runs/${run}/stop`)).status, 204); // it is
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

Deno.test("POST /runs/:id/stop knows nothing of other runs", async () => {
  const { app } = other(shared());
  for (const run of ["r1", "key:1", "__proto__"]) {
    const message = `Cannot stop run "${run}": it does not run`;
    assertEquals(await refusalOf(post(app, `/runs/${run}/stop`)), [404, { code: "unknown", message }]);
  }
});

Deno.test("a run whose record another process writes as it ends does not change the session", async () => {
  const { store, log } = shared();
  const contested: typeof log = {
    ...log,
    async append(run, addition) {
      const { after, lines } = addition;
      if (lines.some((line) => line.includes("Done."))) await log.append(run, { after, lines: ["{}"], ended: false });
      return await log.append(run, addition);
    },
  };
  const { app } = processOf({ store, log: contested }, agent({ model: scripted("Done.") }));
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const { session, run } = first("run.started", framesOf(await pieces.rest()));
  const kept = await store.load(session);
  assertEquals([storedRun(kept), kept?.last], [{ id: run, status: "running" }, undefined]);
});
