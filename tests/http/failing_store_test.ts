/**
 * Runs whose store fails: they do not end, and another process continues them.
 *
 * @module
 */
import { agent, type Model, type RunEnd, type Session, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { failingAppends, recordOf } from "../support/events_journal.ts";
import { processOf, shared } from "../support/process.ts";
import { eventsOf, first, type Framed, framesOf, piecesOf, post } from "../support/requests.ts";
import { storedRun } from "../support/stored_run.ts";
import { saving } from "../support/saving.ts";

/** Executes a run whose store rejects the saves from the first for which `fails` returns true. Another process continues the run. */
async function survive(fails: (session: Session) => boolean) {
  using time = new FakeTime();
  const among = shared();
  let failing = false;
  const ends: RunEnd[] = [];
  const errors: unknown[] = [];
  const sent: string[] = [];
  const send = tool({
    name: "send",
    description: "Sends",
    input: z.object({}),
    execute: (_, { callId }) => `sent, as number ${sent.push(callId)}`,
  });
  const options = {
    onEnd: (end: RunEnd) => void ends.push(end),
    onError: (error: unknown) => void errors.push(String(error)),
  };
  const step = { calls: [{ id: "c1", name: "send", input: {} }] };
  const away = () => Promise.reject(new Error("The store is away"));
  const watched = saving(among.store, (session, save) => {
    failing ||= fails(session);
    return failing ? away() : save();
  }, (renew) => failing ? away() : renew());
  const store = durable(watched);
  const one = processOf({ ...among, store }, agent({ model: scripted(step, "Done."), tools: [send] }), options);
  const response = await post(one.app, "/runs", { prompt: "Go" });
  const received = framesOf(await advanceUntilSettled(time, response.text()));
  await advance(time, 30_000);
  const [{ run, session } = { run: "", session: "" }] = received.filter((event) => event.type === "run.started");
  const before = await recordOf(among.store, run);
  const sentBefore = sent.length;
  const reportsBefore = ends.length;
  const later = scripted(...sentBefore === 0 ? [step] : [], "Done.");
  const two = processOf(among, agent({ model: later, tools: [send] }), options);
  const { runs, over } = await two.app.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  const all = await recordOf(among.store, run);
  assertEquals(storedRun(await among.store.load(session)), undefined);
  return {
    endsOf: {
      received: endsOf(received),
      stored: endsOf(before),
      reports: reportsBefore,
    },
    all: endsOf(all),
    sentBefore,
    sent,
    ends: ends.map(({ event }) => event.type),
    errors: new Set(errors),
  };
}

function endsOf(events: readonly Framed[]): readonly string[] {
  return events.map(({ type }) => type).filter((type) => type.startsWith("run.") && type !== "run.started");
}

const none = { received: [], stored: [], reports: 0 };

Deno.test("a run whose store fails before a call executes no call, does not end, and continues elsewhere", async () => {
  const { endsOf, all, sentBefore, sent, ends, errors } = await survive(({ run }) => run?.position.at === "tools");
  assertEquals([endsOf, sentBefore], [none, 0]);
  assertEquals([all, sent, ends], [["run.finished"], ["c1"], ["run.finished"]]);
  const slow = "SlowStoreError: The store is slow: `append` has not succeeded for 1000 ms";
  assertEquals(errors, new Set(["Error: The store is away", slow]));
});

Deno.test("a run whose store fails after a call does not end, and continues elsewhere with its result", async () => {
  const { endsOf, all, sent, ends } = await survive(({ run, messages }) =>
    run?.position.at === "model" && messages.length > 1
  );
  assertEquals(endsOf, none);
  assertEquals([all, sent, ends], [["run.finished"], ["c1"], ["run.finished"]]);
});

Deno.test("a run whose store fails at the end does not end, and continues elsewhere", async () => {
  const { endsOf, all, sent, ends } = await survive(({ run, report }) => !run && !report);
  assertEquals(endsOf, none);
  assertEquals([all, sent, ends], [["run.finished"], ["c1"], ["run.finished"]]);
});

Deno.test("a run whose session is lost with the data of its store ends unfinished, and the loss is reported", async () => {
  using time = new FakeTime();
  const among = shared();
  const errors: string[] = [];
  const lose = tool({
    name: "lose",
    description: "Loses all sessions",
    input: z.object({}),
    async execute() {
      for (const session of await among.store.list()) await among.store.delete(session);
      return "lost";
    },
  });
  const model = scripted({ calls: [{ id: "c1", name: "lose", input: {} }] }, "Done.");
  const onError = (error: unknown) => void errors.push(String(error));
  const { app } = processOf(among, agent({ model, tools: [lose] }), { onError });
  const response = await post(app, "/runs", { prompt: "Go" });
  const received = framesOf(await advanceUntilSettled(time, response.text()));
  const [{ session } = { session: "" }] = received.filter((event) => event.type === "run.started");
  assertEquals([endsOf(received), model.requests.length], [[], 1]);
  assertEquals(errors, [`Error: Cannot continue session "${session}": the store has lost it`]);
});

Deno.test("a run whose pause cannot be stored does not pause, and another process asks its question after the lease", async () => {
  using time = new FakeTime();
  const among = shared();
  let down = false;
  const store = durable(failingAppends(among.store, () => down));
  const failing = saving({ journal: store.journal }, async (session, save) => {
    down ||= session.run?.exit !== undefined;
    return down ? await Promise.reject(new Error("The store is down")) : await save();
  });
  const ends: RunEnd[] = [];
  const options = { onEnd: (end: RunEnd) => void ends.push(end), onError() {} };
  const asking = () => agent({ model: scripted({ calls: [["drop", { table: "a" }]] }, "Done."), tools: [drop] });
  const one = processOf({ store: durable(failing) }, asking(), options);
  const response = await post(one.app, "/runs", { prompt: "Drop a" });
  const received = framesOf(await advanceUntilSettled(time, response.text()));
  await advanceUntilSettled(time, one.app.settled());
  assertEquals([endsOf(received), ends], [[], []]);
  const { run, session } = first("run.started", received);
  await advance(time, 4 * 30_000);
  const two = processOf(among, asking(), options);
  await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
  const record = await recordOf(among.store, run);
  const { id } = first("run.paused", record);
  assertEquals([record.slice(0, received.length), record.length], [received, id]);
  assertEquals(ends.map((end) => end.id), [`${run}:${id}`]);
  const answer = () => {
    const answers = [{ callId: first("run.paused", record).questions[0]?.callId, type: "approve" }];
    return eventsOf(post(two.app, `/sessions/${session}/answers`, { answers }, { "idempotency-key": "k1" }));
  };
  const rest = await advanceUntilSettled(time, answer());
  assertEquals([rest[0]?.id, endsOf(rest)], [id + 1, ["run.finished"]]);
  assertEquals(await advanceUntilSettled(time, answer()), rest);
});

Deno.test("a run whose store fails for a while during an answer does not end, and continues elsewhere without a gap", async () => {
  using time = new FakeTime();
  const among = shared();
  let down = false;
  const store = durable(failingAppends(among.store, () => down));
  const more = Promise.withResolvers<void>();
  const model: Model = {
    id: "slow",
    async *stream(_, { signal }) {
      yield [{ type: "text", text: "Half" }];
      await more.promise;
      yield [{ type: "text", text: " and" }];
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
  const one = processOf({ store }, agent({ model }), {
    onError() {},
  });
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const received = framesOf(await pieces.until("Half"));
  const { run, session } = first("run.started", received);
  down = true;
  more.resolve();
  assertEquals(framesOf(await advanceUntilSettled(time, pieces.rest())), []);
  down = false;
  await advanceUntilSettled(time, one.app.settled());
  assertEquals([await recordOf(among.store, run), storedRun(await among.store.load(session))?.id], [received, run]);
  await advance(time, 2 * 30_000); // its lease may have been renewed at the end of the outage
  const two = processOf(among, agent({ model: scripted("Whole.") }));
  await advanceUntilSettled(time, two.app.recover().then(({ over }) => over));
  const record = await recordOf(among.store, run);
  assertEquals([record.slice(0, received.length), endsOf(record)], [received, ["run.finished"]]);
});
