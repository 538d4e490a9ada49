/**
 * Runs that pause while the database fails: another process pauses them, and the pause has one number.
 *
 * @module
 */
import { agent, memory, type RunEnd, type ServeOptions } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable, type Journal } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, type Shared, shared } from "../support/process.ts";
import { eventsOf, first, framesOf, post } from "../support/requests.ts";

const answers = [{ callId: "call_1", type: "approve" }];

/** Executes a run in a process whose database fails once the run has its session. Returns what its client has read. */
async function begin(time: FakeTime, { store }: Shared, options: ServeOptions = {}) {
  const append: Journal["append"] = (key, append) =>
    append.from && append.change
      ? Promise.reject(new Error("The database is down"))
      : store.journal.append(key, append);
  const made = agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [drop] });
  const { app } = processOf({ store: durable({ ...store.journal, append }) }, made, { onError() {}, ...options });
  const response = await post(app, "/runs", { prompt: "Drop a" });
  const events = framesOf(await advanceUntilSettled(time, response.text()));
  await advanceUntilSettled(time, app.settled());
  return { events, ...first("run.started", events) };
}

/** A process that continues the run of another one, which asks again. */
function next(among: Shared, options: ServeOptions = {}) {
  const model = scripted({ calls: [["drop", { table: "a" }]] }, "Done.");
  return processOf(among, agent({ model, tools: [drop] }), { onError() {}, ...options }).app;
}

Deno.test("a run whose pause could not be stored pauses in another process, and is answered once", async () => {
  using time = new FakeTime();
  const among = shared();
  const { events, run, session } = await begin(time, among);
  assertEquals(events.some(({ type }) => type === "run.paused"), false); // no answer would find the question
  const app = next(among);
  await advance(time, 4 * 30_000);
  await advanceUntilSettled(time, app.recover().then(({ over }) => over));
  const all = await advanceUntilSettled(time, eventsOf(app.request(`/runs/${run}`)));
  assertEquals(all.slice(0, events.length), events);
  assertEquals(all.at(-1)?.type, "run.paused");
  assertEquals(all.map(({ id }) => id), all.map((_, index) => index + 1));
  const answer = async () => {
    const response = await post(app, `/sessions/${session}/answers`, { answers }, { "idempotency-key": "k1" });
    return framesOf(await response.text());
  };
  const rest = await advanceUntilSettled(time, answer());
  assertEquals(rest.at(-1)?.type, "run.finished");
  assertEquals(await advanceUntilSettled(time, answer()), rest);
});

Deno.test("onEnd receives a pause that another process has stored under its number in the record", async () => {
  using time = new FakeTime();
  const among = { store: durable(memory().journal) };
  const received: RunEnd[] = [];
  const onEnd = (end: RunEnd) => {
    received.push(end);
    if (received.length === 1) throw new Error("no route");
  };
  const { run } = await begin(time, among, { onEnd });
  const app = next(among, { onEnd });
  for (let calls = 0; calls < 4; calls++) {
    await advance(time, 4 * 30_000);
    await advanceUntilSettled(time, app.recover().then(({ over }) => over));
  }
  const paused = (await advanceUntilSettled(time, eventsOf(app.request(`/runs/${run}`)))).at(-1);
  const id = `${run}:${paused?.id}`;
  assertEquals([paused?.type, received.map((end) => end.id)], ["run.paused", [id, id]]);
});
