import { agent, memory, type Model, type RunEnd, serve, type ServeOptions, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { failingAppends, typesIn, watchedEvents } from "../support/events_journal.ts";
import { processOf, type Shared, shared } from "../support/process.ts";
import { type App, eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";

const lease = 30_000;

/** A receiver of ends, which rejects the first ones. */
function receiver(rejects = 0) {
  const ends: RunEnd[] = [];
  let calls = 0;
  const onEnd = (end: RunEnd) => {
    if (calls++ < rejects) return Promise.reject(new Error("no route"));
    return Promise.resolve(ends.push(end));
  };
  return { ends, onEnd, calls: () => calls };
}

/** The ends, without the fields that differ in each run. */
function outline(ends: readonly RunEnd[]) {
  return ends.map(({ run, session: _, id, event, ...rest }) => ({
    ...rest,
    id: id.replace(run, "RUN"),
    type: event.type,
  }));
}

/** The number of sessions that the store lists, and of the reports that wait in it, which it does not list. */
async function entriesOf({ store: { journal } }: Shared, owner?: string) {
  const sessions = await journal.list({ owner });
  const leased = await Promise.all((await journal.pending(100, 2 ** 42)).map((key) => journal.head(key)));
  return { sessions: sessions.length, reports: leased.filter((head) => head?.session === undefined).length };
}

Deno.test("onEnd receives the pause and the end of a run, with its owner, and nothing is left in the store", async () => {
  const among = shared();
  const { ends, onEnd } = receiver();
  const drop = tool({ name: "drop", description: "", input: z.object({}), ask: true, execute: () => "ok" });
  const assistant = agent({ model: scripted({ calls: [["drop", {}]] }, "Done."), tools: [drop] });
  const { app } = processOf(among, assistant, { onEnd, owner: () => "ada" });
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  const { run, session } = first("run.started", events);
  const answers = [{ callId: "call_1", type: "approve" }];
  await eventsOf(post(app, `/sessions/${session}/answers`, { answers }));
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(outline(ends), [
    { owner: "ada", id: `RUN:${events.length}`, type: "run.paused" },
    { owner: "ada", id: "RUN:end", type: "run.finished" },
  ]);
  assertEquals(ends.map((end) => [end.run, end.session]), [[run, session], [run, session]]);
  assertEquals(await entriesOf(among, "ada"), { sessions: 1, reports: 0 });
});

Deno.test("onEnd is called again after 1, 5 and 25 seconds if it rejects, and then by recover()", async () => {
  using time = new FakeTime();
  const among = shared();
  const { ends, onEnd, calls } = receiver(5);
  const errors: unknown[] = [];
  const { app } = processOf(among, agent({ model: scripted("Done.") }), {
    onEnd,
    onError: (error) => errors.push(error),
  });
  await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  const counts: number[] = [];
  for (const ms of [0, 1_000, 5_000, 25_000]) {
    await advance(time, ms);
    counts.push(calls());
  }
  assertEquals(counts, [1, 2, 3, 4]);
  await advance(time, 4 * lease);
  for (let n = 0; n < 3; n++) {
    const { runs, over } = await app.recover();
    assertEquals(runs, []);
    await advanceUntilSettled(time, over);
    await advance(time, lease);
  }
  assertEquals([calls(), outline(ends), errors.length], [6, [{ id: "RUN:end", type: "run.finished" }], 5]);
  assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
});

Deno.test("a report that fails takes no place in a store in memory, and is given up after the fourth attempt", async () => {
  using time = new FakeTime();
  const { onEnd, calls } = receiver(Infinity);
  const store = memory({ max: 2 });
  const app = serve(agent({ model: scripted("One.", "Two.") }), { store, onEnd, onError() {} });
  for (const prompt of ["Hi", "Hello"]) await eventsOf(post(app, "/runs", { prompt }));
  assertEquals([(await store.list()).length, await store.journal.pending(10, 2 ** 42)], [2, []]);
  await advance(time, 31_000);
  assertEquals(calls(), 8);
  await (await app.recover()).over;
  assertEquals(calls(), 8);
});

Deno.test("settled() resolves once onEnd has received the ends, also if the server shuts down meanwhile", async () => {
  const closing = new AbortController();
  const { ends, onEnd } = receiver();
  const reporting = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted("Done.") }), {
    signal: closing.signal,
    async onEnd(end) {
      reporting.resolve();
      await go.promise;
      await onEnd(end);
    },
  });
  await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  await reporting.promise;
  closing.abort();
  let isSettled = false;
  const settled = app.settled().then(() => isSettled = true);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(isSettled, false);
  go.resolve();
  await settled;
  assertEquals(ends.length, 1);
});

/** A model that never answers. */
const stuck: Model = {
  id: "stuck",
  async *stream() {
    yield [{ type: "text", text: "Half" }];
    await new Promise(() => {});
  },
};

Deno.test("onEnd receives the end of a run whose process died during it, from the process that continues it", async () => {
  using time = new FakeTime();
  const among = shared();
  const lost = receiver();
  const one = processOf(among, agent({ model: stuck }), { onEnd: lost.onEnd });
  await piecesOf(await post(one.app, "/runs", { prompt: "Hi" })).until("Half");
  one.kill();
  await advance(time, lease);
  const { ends, onEnd } = receiver();
  const two = processOf(among, agent({ model: scripted("Whole.") }), { onEnd });
  await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
  await advance(time, 10 * lease);
  await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
  assertEquals([lost.ends, outline(ends)], [[], [{ id: "RUN:end", type: "run.finished" }]]);
  assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
});

for (const again of [false, true]) {
  const used = again ? "whose session another run has used since" : "that nothing has followed";
  Deno.test(`onEnd receives the end of a run ${used}, if the process died before it was reported`, async () => {
    using time = new FakeTime();
    const among = shared();
    const lost: RunEnd[] = [];
    const one = processOf(among, agent({ model: scripted("One.") }), {
      onEnd(end) {
        lost.push(end);
        one.kill();
      },
    });
    const events = await eventsOf(post(one.app, "/runs", { prompt: "Hi" }));
    const { session } = first("run.started", events);
    await advance(time, 0);
    const { ends, onEnd } = receiver();
    const options: ServeOptions = { onEnd };
    const two = processOf(among, agent({ model: scripted("Two.") }), options);
    if (again) await eventsOf(post(two.app, "/runs", { prompt: "And?", session }));
    await advance(time, 4 * lease);
    await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
    assertEquals(ends.at(-1), lost[0]);
    assertEquals([ends.length, await entriesOf(among)], [again ? 2 : 1, { sessions: 1, reports: 0 }]);
  });
}

/** An agent whose tool a person has to approve. `execute` runs then. */
function asking(execute: () => unknown = () => {}) {
  const drop = tool({
    name: "drop",
    description: "",
    input: z.object({}),
    ask: true,
    async execute() {
      await execute();
      return "ok";
    },
  });
  return agent({ model: scripted({ calls: [["drop", {}]] }, "Done."), tools: [drop] });
}

/** Begins a run that pauses. Returns a function that approves its call at an app, and reads the end. */
async function pausedRun(app: App) {
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  const answers = [{ callId: "call_1", type: "approve" }];
  return (app: App) => eventsOf(post(app, `/sessions/${session}/answers`, { answers }));
}

Deno.test("onEnd receives the end of a run that ends while its pause is still being reported", async () => {
  using time = new FakeTime();
  const { ends, onEnd } = receiver();
  const among = shared();
  const ending = Promise.withResolvers<void>();
  const { journal } = watchedEvents(among.store, async (key, append) => {
    if (typesIn(append).includes("run.finished")) {
      ending.resolve();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return await among.store.journal.append(key, append);
  });
  const { app } = processOf({ store: durable(journal) }, asking(), {
    async onEnd(end) {
      if (end.event.type === "run.paused") await ending.promise;
      await onEnd(end);
    },
  });
  const approve = await pausedRun(app);
  await advanceUntilSettled(time, approve(app));
  await advance(time, 0);
  assertEquals(outline(ends).map(({ type }) => type), ["run.paused", "run.finished"]);
  assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
});

Deno.test("onEnd receives the end of a run from recover() if its pause was reported after it was resumed", async () => {
  using time = new FakeTime();
  const among = shared();
  const [resumed, reported] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const assistant = asking(async () => {
    resumed.resolve();
    await reported.promise;
  });
  const one = processOf(among, assistant, {
    async onEnd({ event }) {
      if (event.type !== "run.paused") return one.kill();
      await resumed.promise;
      setTimeout(reported.resolve, 10); // once the pause is forgotten
    },
  });
  const approve = await pausedRun(one.app);
  await advanceUntilSettled(time, approve(one.app));
  const { ends, onEnd } = receiver();
  const two = processOf(among, assistant, { onEnd });
  await advance(time, 4 * lease);
  await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
  assertEquals(outline(ends), [{ id: "RUN:end", type: "run.finished" }]);
  assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
});

Deno.test("onEnd receives a pause that no process had reported when another one resumed the run", async () => {
  using time = new FakeTime();
  const among = shared();
  const lost: RunEnd[] = [];
  const assistant = asking();
  const one = processOf(among, assistant, {
    onEnd(end) {
      lost.push(end);
      one.kill();
    },
  });
  const approve = await pausedRun(one.app);
  await advance(time, 0);
  const { ends, onEnd } = receiver();
  const two = processOf(among, assistant, { onEnd });
  await advanceUntilSettled(time, approve(two.app));
  await advance(time, 4 * lease);
  await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
  assertEquals(outline(ends).map(({ type }) => type), ["run.finished", "run.paused"]);
  assertEquals(ends.at(-1), lost[0]);
  assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
});

Deno.test("onEnd receives the end of a run that was resumed while its process removed the entry of the pause", async () => {
  using time = new FakeTime();
  const among = shared();
  const assistant = asking();
  const removing = Promise.withResolvers<void>();
  const resumed = Promise.withResolvers<void>();
  const { journal } = among.store;
  const store = durable({
    ...journal,
    async delete(...keys) {
      removing.resolve();
      await resumed.promise;
      await journal.delete(...keys);
    },
  });
  const one = processOf({ ...among, store }, assistant, { onEnd() {} });
  const approve = await pausedRun(one.app);
  await removing.promise;
  const two = processOf(among, assistant, { onEnd: () => two.kill() });
  await advanceUntilSettled(time, approve(two.app));
  resumed.resolve();
  await advanceUntilSettled(time, one.app.settled());
  const { ends, onEnd } = receiver();
  const three = processOf(among, assistant, { onEnd });
  await advance(time, 4 * lease);
  await advanceUntilSettled(time, three.app.recover().then(({ over }) => over));
  assertEquals(outline(ends), [{ id: "RUN:end", type: "run.finished" }]);
  assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
});

Deno.test("onEnd receives a pause from recover() no more once it was delivered, although answers were refused meanwhile", async () => {
  using time = new FakeTime();
  const among = shared();
  const assistant = asking();
  const one = processOf(among, assistant, { onEnd: () => one.kill() });
  await pausedRun(one.app);
  await advance(time, 0);
  const { ends, onEnd } = receiver();
  const two = processOf(among, assistant, { onEnd });
  const [session = ""] = await among.store.list();
  const answers = [{ callId: "unknown", type: "approve" }];
  const refusal = await advanceUntilSettled(time, post(two.app, `/sessions/${session}/answers`, { answers }));
  assertEquals(refusal.status, 409);
  for (let calls = 0; calls < 4; calls++) {
    await advance(time, 4 * lease);
    await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
  }
  assertEquals([...new Set(ends.map(({ id }) => id))].length, 1);
  assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
});

for (const reason of ["were refused", "could not be stored"]) {
  Deno.test(`onEnd receives a pause that was delivered no more, although answers ${reason} since`, async () => {
    using time = new FakeTime();
    const among = shared();
    const { ends, onEnd } = receiver();
    let isDown = false;
    const store = durable(failingAppends(among.store, (_, { events }) => isDown && events !== undefined));
    const { app } = processOf({ store }, asking(), { onEnd, onError() {} });
    const approve = await pausedRun(app);
    await advanceUntilSettled(time, app.settled());
    const [session = ""] = await among.store.list();
    isDown = reason === "could not be stored";
    const answers = [{ callId: isDown ? "call_1" : "unknown", type: "approve" }];
    const refusal = await advanceUntilSettled(time, post(app, `/sessions/${session}/answers`, { answers }));
    assertEquals(refusal.status, isDown ? 503 : 409);
    isDown = false;
    assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
    await advanceUntilSettled(time, approve(app));
    await advanceUntilSettled(time, app.settled());
    assertEquals(outline(ends).map(({ type }) => type), ["run.paused", "run.finished"]);
    assertEquals(await entriesOf(among), { sessions: 1, reports: 0 });
  });
}

Deno.test("onEnd is not called for a prompt that was refused, nor at a hand-over", async () => {
  using time = new FakeTime();
  const among = shared();
  const { ends, onEnd } = receiver();
  const closing = new AbortController();
  const one = processOf(among, agent({ model: stuck }), { onEnd, signal: closing.signal, grace: 0 });
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const { session } = first("run.started", framesOf(await pieces.until("Half")));
  assertEquals((await post(one.app, "/runs", { prompt: "Me", session })).status, 409);
  assertEquals(await entriesOf(among), { sessions: 1, reports: 1 });
  closing.abort();
  await advanceUntilSettled(time, pieces.rest());
  assertEquals(ends, []);
  const two = processOf(among, agent({ model: scripted("Whole.") }), { onEnd });
  await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
  assertEquals(outline(ends), [{ id: "RUN:end", type: "run.finished" }]);
});

Deno.test("onEnd receives nothing of a prompt that could not be stored, which leaves nothing in the store", async () => {
  using time = new FakeTime();
  const among = shared();
  const { ends, onEnd } = receiver();
  const store = durable(failingAppends(among.store, (_, { events }) => events !== undefined));
  const { app } = processOf({ store }, agent({ model: scripted("Done.") }), { onEnd, onError() {} });
  assertEquals((await advanceUntilSettled(time, post(app, "/runs", { prompt: "Hi" }))).status, 503);
  await advance(time, 4 * lease);
  await advanceUntilSettled(time, app.recover().then(({ over }) => over));
  assertEquals([ends, await entriesOf(among)], [[], { sessions: 0, reports: 0 }]);
});
