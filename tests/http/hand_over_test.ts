/**
 * Shutdowns that hand runs over to another process, first with a store that works, then with one that fails.
 */
import { agent, type Middleware, type Model, serve, type ServeOptions, state, type Store, tool } from "@jizai/jizai";
import { fold, noRun } from "@jizai/jizai/client";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { failingAppends, recordOf } from "../support/events_journal.ts";
import { processOf, type Shared, shared } from "../support/process.ts";
import { eventsOf, first, type Framed, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { storedRun } from "../support/stored_run.ts";
import { saving } from "../support/saving.ts";

const input = z.object({});

/** A process that the test shuts down. */
function closing(among: Shared, assistant: Parameters<typeof processOf>[1], options: ServeOptions = {}) {
  const shutdown = new AbortController();
  return { ...processOf(among, assistant, { signal: shutdown.signal, ...options }), shutdown: () => shutdown.abort() };
}

/** The type of each event, and the field that distinguishes events of that type. */
function outline(events: readonly Framed[]): readonly string[] {
  return events.map((event) => {
    switch (event.type) {
      case "run.started":
        return event.resumed ? "run.started again" : "run.started";
      case "text.delta":
      case "run.finished":
        return `${event.type} ${event.text}`;
      case "tool.finished":
        return `tool.finished ${event.result.status}`;
      default:
        return event.type;
    }
  });
}

const opening = ["run.started", "session.opened", "prompt.accepted", "turn.started", "model.started"];
const again = ["run.started again", "session.opened"];

/** A model that streams "Half", and the rest when the test releases it. */
function slow() {
  const rest = Promise.withResolvers<void>();
  const model: Model = {
    id: "slow",
    async *stream(_request, { signal }) {
      yield [{ type: "text", text: "Half" }];
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      await Promise.race([rest.promise, aborted]);
      yield [{ type: "text", text: " and half." }, { type: "finish", reason: "stop" }];
    },
  };
  return { model, finish: () => rest.resolve() };
}

Deno.test("settled() resolves when the runs in the background were handed over", async () => {
  const { store } = shared();
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const isSaving = Promise.withResolvers<void>();
  const slowStore: Store = {
    ...store,
    journal: saving(store, async (session, save) => {
      if (session.lease?.released) {
        isSaving.resolve();
        await gate.promise;
      }
      return await save();
    }),
  };
  const work = tool({
    name: "work",
    description: "",
    input,
    execute(_, { signal }) {
      begun.resolve();
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  });
  const shutdown = new AbortController();
  const options = { store: slowStore, signal: shutdown.signal, grace: 0 };
  const app = serve(agent({ model: scripted({ calls: [["work", {}]] }), tools: [work] }), options);
  const { session } = await (await post(app, "/runs", { prompt: "Hi" }, { prefer: "respond-async" })).json();
  await begun.promise;
  let isSettled = false;
  shutdown.abort();
  const settled = app.settled().then(() => isSettled = true);
  await isSaving.promise;
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(isSettled, false);
  gate.resolve();
  await settled;
  assertEquals((await store.load(session))?.lease?.released, true);
});

Deno.test("a shutdown waits for a response within grace, and hands the run over after it", async () => {
  using time = new FakeTime();
  const among = shared();
  const { model, finish } = slow();
  const seen: string[] = [];
  const watch: Middleware = {
    name: "watch",
    async abort({ reason }, next) {
      seen.push(reason);
      await next();
    },
  };
  const one = closing(among, agent({ model, use: [watch] }));
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const received = await pieces.until("Half");
  one.shutdown();
  await advance(time, 1_000);
  finish();
  const all = framesOf(received + await advanceUntilSettled(time, pieces.rest()));
  assertEquals(outline(all), [...opening, "text.delta Half", "text.delta  and half.", "model.finished"]);
  const { run } = first("run.started", all);
  const two = processOf(among, agent({ model: scripted("Twice."), use: [watch] }));
  const { runs, over } = await two.app.recover();
  await advanceUntilSettled(time, over);
  const record = await recordOf(among.store, run);
  assertEquals([runs, seen], [[run], []]);
  assertEquals(outline(record.slice(all.length)), [
    ...again,
    "turn.started",
    "turn.finished",
    "session.closed",
    "run.finished Half and half.",
  ]);
});

Deno.test("a shutdown discards a response that takes longer than grace; the next process asks again and emits model.reset", async () => {
  using time = new FakeTime();
  const among = shared();
  const one = closing(among, agent({ model: slow().model }), { grace: 2_000 });
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const received = await pieces.until("Half");
  one.shutdown();
  await advance(time, 1_900);
  const { run, session } = first("run.started", framesOf(received));
  const busy = processOf(among, agent({ model: scripted("Not now.") }));
  assertEquals((await refusalOf(post(busy.app, "/runs", { prompt: "Me", session })))[0], 409);
  const all = framesOf(received + await advanceUntilSettled(time, pieces.rest()));
  assertEquals(outline(all), [...opening, "text.delta Half"]);
  const two = processOf(among, agent({ model: scripted("Whole.") }));
  const rest = framesOf(
    await (await two.app.request(`/runs/${run}`, { headers: { "last-event-id": `${all.at(-1)?.id}` } })).text(),
  );
  assertEquals(outline(rest), [
    ...again,
    "turn.started",
    "model.started",
    "model.reset",
    "text.delta Whole.",
    "model.finished",
    "turn.finished",
    "session.closed",
    "run.finished Whole.",
  ]);
  const { messages } = [...all, ...rest].map(({ id, ...event }) => ({ id, event })).reduce(fold, noRun);
  assertEquals(messages.at(-1)?.parts, [{ type: "text", id: 0, text: "Whole." }]);
});

/** An agent with a tool that is slow for the first time. */
function working(
  idempotent: boolean,
  done: string[],
  milliseconds: number,
  model: Model = scripted({ calls: [["work", {}]] }, "Done."),
) {
  const work = tool({
    name: "work",
    description: "Works",
    input,
    idempotent,
    async execute(_, { signal, idempotencyKey }) {
      done.push(idempotencyKey.split(":").slice(1).join(":"));
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(resolve, milliseconds);
        signal.addEventListener("abort", () => {
          clearTimeout(timer);
          reject(signal.reason);
        });
      });
      return "Worked.";
    },
  });
  return agent({ model, tools: [work] });
}

for (
  const [idempotent, first, status, times] of [
    [true, 1_000, "ok", 1],
    [true, 60_000, "ok", 2],
    [false, 1_000, "ok", 1],
    [false, 60_000, "aborted", 1],
  ] as const
) {
  const kind = idempotent ? "an idempotent tool" : "a tool";
  Deno.test(`a shutdown with ${kind} that takes ${first} ms: it runs ${times} times, and its result is ${status}`, async () => {
    using time = new FakeTime();
    const among = shared();
    const done: string[] = [];
    const one = closing(among, working(idempotent, done, first));
    const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Go" }));
    const received = await pieces.until("tool.started");
    const { run } = framesOf(received).find((event) => event.type === "run.started") ?? { run: "" };
    await advance(time, 0);
    one.shutdown();
    await advanceUntilSettled(time, pieces.rest());
    const two = processOf(among, working(idempotent, done, 0, scripted("Done.")));
    const { runs, over } = await two.app.recover();
    await advanceUntilSettled(time, over);
    const record = await recordOf(among.store, run);
    assertEquals([runs, done], [[run], Array.from({ length: times }, () => "1:0")]);
    assertEquals(outline(record).filter((line) => line.startsWith("tool.finished")), [`tool.finished ${status}`]);
    assertEquals(outline(record).at(-1), "run.finished Done.");
    assertEquals(record.map(({ id }) => id), record.map((_, index) => index + 1));
  });
}

Deno.test("a run that was handed over continues within two seconds where a process calls recover() every second", async () => {
  using time = new FakeTime();
  const among = shared();
  const one = closing(among, agent({ model: slow().model }), { grace: 500 });
  const two = processOf(among, agent({ model: scripted("Whole.") }));
  const timer = setInterval(() => two.app.recover(), 1_000);
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const { run } = first("run.started", framesOf(await pieces.until("Half")));
  await advance(time, 300);
  one.shutdown();
  await advanceUntilSettled(time, pieces.rest());
  const released = Date.now();
  while (outline(await recordOf(among.store, run)).at(-1) !== "run.finished Whole.") await advance(time, 100);
  clearInterval(timer);
  assert(Date.now() - released <= 2_000, `It took ${Date.now() - released} ms`);
});

Deno.test("a hand-over does not count as a death of the run", async () => {
  using time = new FakeTime();
  const among = shared();
  const one = closing(among, agent({ model: slow().model }), { grace: 0 });
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const { run } = first("run.started", framesOf(await pieces.until("Half")));
  one.shutdown();
  await advanceUntilSettled(time, pieces.rest());
  for (let n = 0; n < 10; n++) {
    const next = closing(among, agent({ model: slow().model }), { grace: 0, limits: { recoveries: 1 } });
    const { runs, over } = await next.app.recover();
    assertEquals(runs, [run]);
    next.shutdown();
    await advanceUntilSettled(time, over);
  }
  const last = processOf(among, agent({ model: scripted("Whole.") }));
  await advanceUntilSettled(time, last.app.recover().then(({ over }) => over));
  const record = await recordOf(among.store, run);
  assertEquals(outline(record).at(-1), "run.finished Whole.");
  assertEquals(record.map(({ id }) => id), record.map((_, index) => index + 1));
});

Deno.test("a run whose state is not JSON at a hand-over is reported, and continues from its last save", async () => {
  using time = new FakeTime();
  const among = shared();
  const errors: string[] = [];
  const started = Promise.withResolvers<void>();
  const counts = state<{ count: number | bigint }>("counts", () => ({ count: 0 }));
  const spoiling: Middleware = {
    name: "spoiling",
    execute(ctx, next) {
      counts.get(ctx).count = 1n; // past the check of set()
      started.resolve();
      return next();
    },
  };
  const wait = tool({ name: "wait", description: "Waits", input, execute: () => new Promise(() => {}) });
  const spoiled = agent({ model: scripted({ calls: [["wait", {}]] }), tools: [wait], use: [spoiling] });
  const onError = (error: unknown) => void errors.push(String(error));
  const one = closing(among, spoiled, { grace: 100, onError });
  const { run } = await (await post(one.app, "/runs", { prompt: "Go" }, { prefer: "respond-async" })).json();
  await started.promise;
  one.shutdown();
  await advanceUntilSettled(time, one.app.settled());
  assertEquals(errors, ["TypeError: Do not know how to serialize a BigInt"]);
  await advance(time, 30_000); // its lease
  const two = processOf(among, agent({ model: scripted("Done."), tools: [wait] }));
  const { runs, over } = await two.app.recover();
  await advanceUntilSettled(time, over);
  assertEquals(runs, [run]);
  assertEquals(outline(await recordOf(among.store, run)).slice(-1), ["run.finished Done."]);
});

Deno.test("stop() ends a run during a shutdown, and a run in memory is aborted", async () => {
  using time = new FakeTime();
  const among = shared();
  const one = closing(among, agent({ model: slow().model }));
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  const received = framesOf(await pieces.until("Half"));
  const { run } = first("run.started", received);
  const two = processOf(among, agent({ model: scripted() }));
  one.shutdown();
  await two.app.request(`/runs/${run}/stop`, { method: "POST" });
  await advanceUntilSettled(time, pieces.rest());
  const record = await recordOf(among.store, run);
  assertEquals(outline(record).filter((line) => line === "run.aborted").length, 1);
  assertEquals((await two.app.recover()).runs, []);
});

Deno.test("a wire, whose clients do not reconnect, ends with the code unavailable at a hand-over", async () => {
  using time = new FakeTime();
  const { chatCompletions } = await import("@jizai/jizai/wire/openai");
  const among = shared();
  for (const stream of [true, false]) {
    const one = closing(among, agent({ model: slow().model }), { wires: [chatCompletions()], grace: 100 });
    const body = { model: "agent", stream, messages: [{ role: "user", content: "Hi" }] };
    const asked = post(one.app, "/v1/chat/completions", body);
    await advance(time, 50);
    one.shutdown();
    const response = await advanceUntilSettled(time, asked);
    const text = await advanceUntilSettled(time, response.text());
    assertStringIncludes(text, "unavailable");
    assertEquals([response.status, text.includes("Half")], stream ? [200, true] : [502, false]);
  }
});

// A shutdown while the store fails.

Deno.test("a shutdown waits no longer than grace and a second for a store that fails, and another process continues the run", async () => {
  using time = new FakeTime();
  const among = shared();
  const more = Promise.withResolvers<void>();
  const model: Model = {
    id: "slow",
    async *stream(_request, { signal }) {
      yield [{ type: "text", text: "Half" }];
      await more.promise;
      yield [{ type: "text", text: " and" }];
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
  let down = false;
  const store = durable(failingAppends(among.store, () => down));
  const shutdown = new AbortController();
  const options = { signal: shutdown.signal, grace: 3_000, onError() {} };
  const one = processOf({ store }, agent({ model }), options);
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Go" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("Half")));
  down = true;
  shutdown.abort();
  await advance(time, 2_000);
  more.resolve();
  const before = Date.now();
  await advanceUntilSettled(time, one.app.settled());
  assertEquals(Date.now() - before <= 2_500, true);
  assertEquals(storedRun(await among.store.load(session)), { id: run, status: "running" });
  await advance(time, 30_000); // its lease
  const two = processOf(among, agent({ model: scripted("Whole.") }));
  const { runs, over } = await two.app.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  assertEquals((await among.store.load(session))?.last?.event.type, "run.finished");
  await pieces.rest();
});

Deno.test("a call whose result could not be stored before a shutdown has in the session the result that clients read", async () => {
  using time = new FakeTime();
  const among = shared();
  const result = Promise.withResolvers<string>();
  let down = false;
  const store = durable(failingAppends(among.store, () => down));
  const pay = tool({ name: "pay", description: "", input: z.object({}), execute: () => result.promise });
  const paying = () => agent({ model: scripted({ calls: [["pay", {}]] }, "Done."), tools: [pay] });
  const shutdown = new AbortController();
  const options = { signal: shutdown.signal, grace: 3_000, onError() {} };
  const one = processOf({ store }, paying(), options);
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Go" }));
  const { run, session } = first("run.started", framesOf(await pieces.until("tool.started")));
  down = true;
  shutdown.abort();
  await advance(time, 500);
  result.resolve("Paid");
  await advanceUntilSettled(time, one.app.settled());
  down = false;
  await advance(time, 30_000); // its lease
  const two = processOf(among, agent({ model: scripted("Whole."), tools: [pay] }));
  const { runs, over } = await two.app.recover();
  assertEquals(runs, [run]);
  await advanceUntilSettled(time, over);
  const events = await eventsOf(two.app.request(`/runs/${run}`, { headers: { "last-event-id": "0" } }));
  const stored = await among.store.load(session);
  assertEquals(
    events.flatMap((event) => event.type === "tool.finished" ? [event.result] : []),
    stored?.messages.flatMap((message) => message.role === "tool" ? message.results : []),
  );
  assertEquals([stored?.last?.event.type, events.at(-1)?.type], ["run.finished", "run.finished"]);
  await pieces.rest();
});
