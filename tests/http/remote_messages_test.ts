import { agent, type Store, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assert, assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { failingAppends } from "../support/events_journal.ts";
import { type Process, processOf, shared } from "../support/process.ts";
import { type App, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { lines } from "../support/transcript_lines.ts";
import { storedMail } from "../support/stored_run.ts";
import { saving } from "../support/saving.ts";

/** A run whose tool waits, and another process with the same store and log. */
async function elsewhere(store: (given: Store) => Store = (given) => given, turns = 1) {
  const among = shared();
  const gate = Promise.withResolvers<string>();
  const work = tool({ name: "work", description: "Works", input: z.object({}), execute: () => gate.promise });
  const model = scripted(...Array.from({ length: turns }, () => ({ calls: [["work", {}]] as const })), "Done.");
  const made = () => agent({ model, tools: [work] });
  const here = processOf({ ...among, store: store(among.store) }, made());
  const there = processOf(among, made()).app;
  const pieces = piecesOf(await post(here.app, "/runs", { prompt: "Go" }));
  const begun = await pieces.until(`"tool.started"`);
  const { run, session } = first("run.started", framesOf(begun));
  const rest = async () => {
    gate.resolve("worked");
    return framesOf(begun + await pieces.rest());
  };
  return { among, here, there, run, session, model, rest };
}

const send = (app: App, run: string, text: string) => post(app, `/runs/${run}/messages`, { text });

Deno.test("messages to a run in another process are delivered there, in order", async () => {
  const { there, run, model, rest } = await elsewhere();
  const sent = [await send(there, run, "Make it red"), await send(there, run, "And large")];
  assertEquals(sent.map(({ status }) => status), [202, 202]);
  const { messages } = first("steering.injected", await rest());
  assertEquals(lines(messages), ["user Make it red", "user And large"]);
  assertEquals(lines(model.requests[1]?.messages ?? []), [
    "user Go",
    "call work",
    "ok worked",
    "user Make it red",
    "user And large",
  ]);
});

Deno.test("a run is finished from another process", async () => {
  const { there, run, model, rest } = await elsewhere();
  assertEquals((await post(there, `/runs/${run}/finish`)).status, 204);
  const { status, reason } = first("run.finished", await rest());
  assertEquals([status, reason, model.requests[1]?.tools], ["done", "interrupted", []]);
});

Deno.test("a run receives messages from other processes when it renews its lease", async () => {
  using time = new FakeTime();
  const { among, there, run, session, rest } = await elsewhere();
  await send(there, run, "Make it red");
  await post(there, `/runs/${run}/finish`);
  await advance(time, 11_000);
  const { mail = [] } = await among.store.load(session) ?? {};
  assertEquals(lines(mail.flatMap((each) => each.type === "message" ? [each.message] : [])), ["user Make it red"]);
  assertEquals(mail.map(({ type }) => type), ["message", "finish"]);
  await rest();
});

Deno.test("at most ten messages wait for a run in another process, and a finished run refuses messages", async () => {
  const { there, run, rest } = await elsewhere();
  for (let index = 0; index < 10; index++) assertEquals((await send(there, run, "Hi")).status, 202);
  const full = { code: "full", message: `Cannot send a message to run "${run}": too many wait` };
  assertEquals(await refusalOf(send(there, run, "Hi")), [409, full]);
  await rest();
  for (const id of [run, "none"]) {
    const over = { code: "unknown", message: `Cannot send a message to run "${id}": it does not run` };
    assertEquals(await refusalOf(send(there, id, "Hi")), [404, over]);
  }
});

/** Begins a run whose end is saved once it is released. `ending` resolves when the run begins to save it. */
async function endingElsewhere() {
  const { promise: ending, resolve: end } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const begun = await elsewhere((store) => ({
    ...store,
    journal: saving(store, async (session, save) => {
      if (!session.run) {
        end();
        await released;
      }
      return await save();
    }),
  }));
  return { ...begun, ending, release };
}

Deno.test("a message to a run that ends is kept for the next run", async () => {
  const { among, there, run, session, rest, ending, release } = await endingElsewhere();
  const all = rest();
  await ending;
  assertEquals((await send(there, run, "Make it red")).status, 202);
  release();
  assertEquals((await all).at(-1)?.type, "run.finished");
  const { messages = [], run: left } = await among.store.load(session) ?? {};
  assertEquals([lines(messages).slice(-2), left], [["assistant Done.", "user Make it red"], undefined]);
});

Deno.test("a message to a run that ends with a rollback is not kept", async () => {
  const { among, here, there, run, session, rest, ending, release } = await endingElsewhere();
  assertEquals((await post(here.app, `/runs/${run}/stop?rollback`)).status, 204);
  await ending;
  assertEquals((await send(there, run, "Make it red")).status, 202);
  assertEquals(storedMail(await among.store.load(session)), 1);
  release();
  assertEquals((await rest()).at(-1)?.type, "run.aborted");
  const { messages, mail, run: left } = await among.store.load(session) ?? {};
  assertEquals([messages, mail, left], [[], undefined, undefined]);
});

Deno.test("a run that is stopped elsewhere while it saves is stopped, and keeps a message to it once", async () => {
  let stopping: (() => Promise<void>) | undefined;
  const { among: { store }, there, run, session, rest } = await elsewhere((store) => ({
    ...store,
    journal: saving(store, async (_, save) => {
      const stop = stopping;
      stopping = undefined;
      await stop?.();
      return await save();
    }),
  }));
  assertEquals((await send(there, run, "Make it red")).status, 202);
  stopping = async () => assertEquals((await post(there, `/runs/${run}/stop`)).status, 204);
  const end = (await rest()).at(-1)?.type;
  const { messages = [], run: left } = await store.load(session) ?? {};
  assertEquals([end, lines(messages), left], [
    "run.aborted",
    ["user Go", "call work", "ok worked", "user Make it red"],
    undefined,
  ]);
});

Deno.test("a message is delivered if the save before it was made but reported as failed", async () => {
  const { promise: made, resolve } = Promise.withResolvers<void>();
  let failing = false;
  const { there, run, rest } = await elsewhere((store) => ({
    ...store,
    journal: saving(store, async (_, save) => {
      const version = await save();
      if (!failing) return version;
      failing = false;
      resolve();
      throw new Error("The line is dead");
    }),
  }), 2);
  failing = true;
  const all = rest();
  await made;
  assertEquals((await send(there, run, "Make it red")).status, 202);
  const events = await all;
  assertEquals(lines(first("steering.injected", events).messages), ["user Make it red"]);
  assertEquals(events.at(-1)?.type, "run.finished");
});

/** A run whose process has died, with a message that it has not read. */
async function lostWithMessage(time: FakeTime) {
  const parts = await elsewhere();
  await send(parts.there, parts.run, "Make it red");
  parts.here.kill();
  await advance(time, 30_000);
  return parts;
}

Deno.test("a message to a run whose process died is delivered after the run is resumed", async () => {
  using time = new FakeTime();
  const { there, run } = await lostWithMessage(time);
  const followed = there.request(`/runs/${run}`);
  const events = framesOf(await (await followed).text());
  assertEquals(lines(first("steering.injected", events).messages), ["user Make it red"]);
});

Deno.test("a message to a run whose process died stays if a process that continues the run cannot store its claim", async () => {
  using time = new FakeTime();
  const { among, there, run, session } = await lostWithMessage(time);
  const store = durable(failingAppends(among.store, () => true));
  const { app } = processOf({ store }, agent({ model: scripted() }), { onError() {} });
  await advanceUntilSettled(time, app.recover().then(({ over }) => over));
  assertEquals(storedMail(await among.store.load(session)), 1);
  await advance(time, 30_000);
  const { runs, over } = await there.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  const { messages = [] } = await among.store.load(session) ?? {};
  assertEquals(lines(messages).slice(-2), ["user Make it red", "assistant Done."]);
});

Deno.test("a message to a run whose process died is delivered although the next process dies, too, once it has the run", async () => {
  using time = new FakeTime();
  const { among, there, run, session } = await lostWithMessage(time);
  const doomed: { one?: Process } = {};
  const store = durable(saving(among.store, async (_, save) => {
    const version = await save();
    doomed.one?.kill();
    return version;
  }));
  doomed.one = processOf({ ...among, store }, agent({ model: scripted() }));
  void doomed.one.app.recover();
  await advance(time, 30_000);
  const { runs, over } = await there.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  const { messages = [] } = await among.store.load(session) ?? {};
  assertEquals(lines(messages).slice(-2), ["user Make it red", "assistant Done."]);
});

/** Saves a session as a process that takes it over does, also if its own process saves it. */
async function takeOver(store: Store, id: string): Promise<void> {
  const kept = await store.load(id);
  assert(kept);
  if (await store.save(kept) === undefined) await takeOver(store, id);
}

Deno.test("a process that takes over a run does not treat the earlier saves as messages", async () => {
  const { among, there, run, session, model, rest } = await elsewhere();
  await takeOver(among.store, session);
  assertEquals((await send(there, run, "Make it red")).status, 202);
  assertEquals((await rest()).at(-1)?.type, "approval.decided"); // the other process sends the rest
  assertEquals(model.requests.length, 1);
  assertEquals(storedMail(await among.store.load(session)), 1);
});
