/**
 * Runs that pause while the log is down: the pause receives the number that is next in the record.
 *
 * @module
 */
import { agent, type RunEnd, type ServeOptions } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import type { Addition, Log } from "@jizai/jizai/session/log";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, type Shared, shared } from "../support/process.ts";
import { eventsOf, first, framesOf, post } from "../support/requests.ts";

const asking = () => agent({ model: scripted({ calls: [["drop", { table: "a" }]] }), tools: [drop] });
const continuing = () => agent({ model: scripted("Done."), tools: [drop] });

const answers = [{ callId: "call_1", type: "approve" }];

/** Executes a run in a process whose log fails after its first events. The run pauses, and its session is stored. */
async function pauseWithoutLog(time: FakeTime, among: Shared, options: ServeOptions = {}) {
  const append: Log["append"] = (run, addition) =>
    addition.after > 0 ? Promise.reject(new Error("The log is down")) : among.log.append(run, addition);
  const { app } = processOf({ ...among, log: { ...among.log, append } }, asking(), {
    onError() {},
    ...options,
  });
  const response = await post(app, "/runs", { prompt: "Drop a" });
  const started = first("run.started", framesOf(await advanceUntilSettled(time, response.text())));
  await advanceUntilSettled(time, app.settled());
  return started;
}

Deno.test("POST /sessions/:id/answers with the same key joins the run, if events before the pause could not be logged", async () => {
  using time = new FakeTime();
  const among = shared();
  const { session } = await pauseWithoutLog(time, among);
  const { app } = processOf(among, continuing());
  const answer = async () => {
    const response = await post(app, `/sessions/${session}/answers`, { answers }, { "idempotency-key": "k1" });
    return framesOf(await response.text());
  };
  const events = await advanceUntilSettled(time, answer());
  assertEquals(events.at(-1)?.type, "run.finished");
  assertEquals(await advanceUntilSettled(time, answer()), events);
});

for (const follows of [false, true]) {
  const when = follows ? "once a client has followed the run" : "before a client follows the run";
  Deno.test(`onEnd receives a pause under its number in the record, if events before it could not be logged, ${when}`, async () => {
    using time = new FakeTime();
    const among = shared();
    const received: RunEnd[] = [];
    const onEnd = (end: RunEnd) => {
      received.push(end);
      if (received.length === 1) throw new Error("no route");
    };
    const { run } = await pauseWithoutLog(time, among, { onEnd });
    const { app } = processOf(among, continuing(), { onEnd, onError() {} });
    const follow = () => advanceUntilSettled(time, eventsOf(app.request(`/runs/${run}`)));
    if (follows) await follow();
    for (let calls = 0; calls < 3; calls++) {
      await advance(time, 4 * 30_000);
      await advanceUntilSettled(time, app.recover().then(({ over }) => over));
    }
    const paused = (await follow()).at(-1);
    const id = `${run}:${paused?.id}`;
    assertEquals([paused?.type, received.map((end) => end.id)], ["run.paused", [id, id]]);
  });
}

Deno.test("a pause that is logged later counts for the owner of the run, and is kept as long as any pause", async () => {
  using time = new FakeTime();
  const among = shared();
  const owner = () => "ada";
  const { run, session } = await pauseWithoutLog(time, among, { owner });
  const added: Addition[] = [];
  const append: Log["append"] = (run, addition) => {
    added.push(addition);
    return among.log.append(run, addition);
  };
  const { app } = processOf({ ...among, log: { ...among.log, append } }, continuing(), { owner });
  await advanceUntilSettled(time, eventsOf(app.request(`/runs/${run}`)));
  assertEquals(added.map(({ ended, pinned }) => [ended, pinned]), [[true, true]]);
  const response = await post(app, `/sessions/${session}/answers`, { answers });
  await advanceUntilSettled(time, response.text());
  assertEquals(added.map(({ owner }) => owner), added.map(() => "ada"));
});
