import { agent, type Event, memory, type Model, serve, type ServeOptions, type Store, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { type Append, type Appended, durable, type Journal, SlowStoreError } from "@jizai/jizai/session/durable";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import { assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { drop } from "../support/asking.ts";
import * as z from "zod";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { type EventsAppend, failingAppends, recordOf, typesIn, watchedEvents } from "../support/events_journal.ts";
import { shared } from "../support/process.ts";
import { eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { journalKey, placeOf } from "../../src/core/journal.ts";
import { stepping } from "../support/stepping.ts";
import { storedProgress, storedRun } from "../support/stored_run.ts";
import { saving } from "../support/saving.ts";

/** A store in memory, with another `append` of events; see `watchedEvents()`. */
function watched(watch?: (journal: Journal, key: string, append: EventsAppend) => Promise<Appended | undefined>) {
  const { journal } = memory();
  const events = watchedEvents({ journal }, watch && ((key, append) => watch(journal, key, append)));
  return { ...events, store: { ...memory(), journal: events.journal } };
}

Deno.test("serve() stores exactly what it streams", async () => {
  const store = memory();
  const app = serve(agent({ model: scripted({ text: ["Hel", 'lo "自在鉤"!\u2028'] }) }), { store });
  const text = await (await post(app, "/runs", { prompt: "Hi" })).text();
  const { key, run } = placeOf(first("run.started", framesOf(text)).run) ?? { key: "", run: 0 };
  const { first: number, lines = [], over } = await store.journal.read(key, run, 0) ?? {};
  assertEquals([number, over], [1, true]);
  assertEquals(lines.map((line, index) => `id: ${index + 1}\ndata: ${line}\n\n`).join(""), text);
});

Deno.test("serve() streams the same in memory and with a durable store", async () => {
  const model = () => scripted({ reasoning: ["H", "m."], text: "See.", calls: [["drop", { table: "a" }]] }, "Done.");
  const both = [{}, shared()].map(async (options) => {
    const app = serve(agent({ model: model(), tools: [drop] }), options);
    const events = await eventsOf(post(app, "/runs", { prompt: "Go" }));
    const { session, run } = first("run.started", events);
    const answers = [{ callId: "call_1", type: "approve" }];
    events.push(...await eventsOf(post(app, `/sessions/${session}/answers`, { answers })));
    return JSON.stringify(events).replaceAll(session, "session").replaceAll(run, "run")
      .replace(/"batch":"[^"]+"/g, `"batch":"batch"`);
  });
  const [without, recorded] = await Promise.all(both);
  assertEquals(recorded, without);
});

Deno.test("serve() sends no event before it is stored", async () => {
  let gate = Promise.withResolvers<void>();
  const { store, appends, begun } = watched(async (journal, key, append) => {
    await gate.promise;
    return await journal.append(key, append);
  });
  const { model, release } = stepping("One.", "Two.");
  const responding = post(serve(agent({ model }), { store }), "/runs", { prompt: "Hi" });
  let responded = false;
  responding.then(() => responded = true);
  await begun(1);
  await turns();
  assertEquals([responded, appends.length], [false, 1]); // not even the headers have been sent

  gate.resolve();
  const pieces = piecesOf(await responding);
  await pieces.until("model.started");
  gate = Promise.withResolvers();
  const count = appends.length;
  release(0);
  let received: string | undefined;
  const receiving = pieces.next().then((piece) => received = piece);
  await begun(count + 1);
  await turns();
  assertEquals([received, appends.length], [undefined, count + 1]);
  gate.resolve();
  await receiving;
  assertEquals(framesOf(received ?? "").map(({ type }) => type), ["text.delta"]);
  release(1);
  await pieces.rest();
});

Deno.test("serve() stores together the events that were emitted during an append", async () => {
  const gate = Promise.withResolvers<void>();
  const { store, appends, begun } = watched(async (journal, key, append) => {
    if (append.events.first > 3) await gate.promise;
    return await journal.append(key, append);
  });
  const { model, release } = stepping("a", "b", "c", "d");
  const pieces = piecesOf(await post(serve(agent({ model }), { store }), "/runs", { prompt: "Hi" }));
  const received = await pieces.until("model.started");
  const count = appends.length;
  release(0);
  await begun(count + 1);
  for (const step of [1, 2, 3]) release(step);
  await turns();
  assertEquals(appends.slice(count).map(typesIn), [["text.delta"]]);
  gate.resolve();
  const text = received + await pieces.rest();
  assertEquals(framesOf(text).map(({ id }) => id), Array.from({ length: 13 }, (_, index) => index + 1));
  assertEquals(appends.slice(count).map(typesIn), [
    ["text.delta"],
    ["text.delta", "text.delta", "text.delta", "model.finished", "turn.finished", "session.closed", "run.finished"],
  ]);
});

Deno.test("serve() stores every end of a run, and its continuation", async () => {
  const ends: readonly (readonly [type: string, model: Model])[] = [
    ["run.finished", scripted("Hello!")],
    ["run.failed", scripted({ error: new Error("down") })],
    ["run.paused", scripted({ calls: [["drop", { table: "a" }]] }, "Done.")],
  ];
  const isEnded = ({ change }: Append) => change?.entries.some(({ type }) => type === "ended") === true;
  for (const [type, model] of ends) {
    const { store, appends } = watched();
    const app = serve(agent({ model, tools: [drop] }), { store });
    const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    assertEquals(events.at(-1)?.type, type);
    assertEquals(appends.map(isEnded), appends.map((_, index) => index === appends.length - 1));
    if (type !== "run.paused") continue;
    const { session, run } = first("run.started", events);
    const answers = [{ callId: "call_1", type: "approve" }];
    events.push(...await eventsOf(post(app, `/sessions/${session}/answers`, { answers })));
    assertEquals(appends.filter(isEnded).length, 2);
    assertEquals(await recordOf(store, run), events);
  }
});

Deno.test("serve() stops a run whose session another process has taken, and sends no further events", async () => {
  const ended = Promise.withResolvers<Event>();
  const { model, release } = stepping("One.", "Two.", "Three.");
  const { store } = shared();
  const app = serve(
    agent({ model, observe: (event) => event.type === "run.aborted" && ended.resolve(event) }),
    { store, onClientGone: "detach" },
  );
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  release(0);
  const before = framesOf(await pieces.until("One."));
  const { run, session } = first("run.started", before);
  const { key } = placeOf(run) ?? { key: "" };
  const { mark } = await store.journal.head(key) ?? {};
  const events = { first: before.length + 1, lines: [`{"type":"notice","text":"Mine."}`] };
  await store.journal.append(key, { from: mark, to: { holder: "another process", n: 99 }, events });
  release(1);
  assertEquals(await pieces.rest(), "");
  release(2);
  const last = await ended.promise;
  assertEquals("reason" in last && last.reason, "lost");
  await turns();
  assertEquals((await recordOf(store, run)).slice(before.length), [{ type: "notice", text: "Mine.", id: 7 }]);
  assertEquals(storedRun(await store.load(session))?.status, "running"); // as the next process finds it
});

Deno.test("serve() stores nothing more of a run after another process saved its session", async () => {
  using time = new FakeTime();
  const ended = Promise.withResolvers<void>();
  const { store } = shared();
  const { model, release } = stepping("One.", "Two.");
  const app = serve(
    agent({ model, observe: (event) => event.type === "run.aborted" && ended.resolve() }),
    { store, onClientGone: "detach" },
  );
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  release(0);
  const before = framesOf(await pieces.until("One."));
  const { run, session } = first("run.started", before);
  const kept = await store.load(session);
  if (kept) await store.save(kept);
  await advance(time, 30_000);
  release(1);
  await ended.promise;
  assertEquals([framesOf(await pieces.rest()), await recordOf(store, run)], [[], before]);
});

Deno.test("serve() stores each save of a run together with the events that show it", async () => {
  const { store } = shared();
  const stored: (readonly string[])[] = [];
  let progress: string | undefined;
  const { journal } = watchedEvents(store, (key, append) => {
    stored.push([...append.change ? [`save ${progress}`] : [], ...typesIn(append)]);
    return store.journal.append(key, append);
  });
  const saves = saving({ journal }, (session, save) => {
    progress = storedProgress(session);
    return save();
  });
  const model = scripted({ calls: [["drop", { table: "a" }]] }, "Done.");
  const tools = [{ ...drop, ask: false }];
  const app = serve(agent({ model, tools }), { store: durable(saves) });
  await eventsOf(post(app, "/runs", { prompt: "Go" }));
  assertEquals(stored, [
    ["save prompt", "run.started", "session.opened"],
    ["save model", "prompt.accepted"],
    [
      "save tools running",
      ...["turn.started", "model.started", "call.delta", "call.ready", "model.finished"],
      ...["tool.started", "approval.decided"],
    ],
    ["save model", "tool.finished", "turn.finished"],
    [
      "save end",
      ...["turn.started", "model.started", "text.delta", "model.finished"],
      ...["turn.finished", "session.closed", "run.finished"],
    ],
  ]);
});

Deno.test("serve() retries a failed append, and appends nothing twice", async () => {
  using time = new FakeTime();
  for (const isStored of [false, true]) {
    let failures = 0;
    const { store, appends } = watched(async (journal, key, append) => {
      const fails = append.events.first > 1 && ++failures <= 2;
      if (fails && !isStored) throw new Error("The store is down");
      const done = await journal.append(key, append);
      if (fails) throw new Error("The answer of the store was lost");
      return done;
    });
    const reported: unknown[] = [];
    const app = serve(agent({ model: scripted("Hello!") }), { store, onError: (error) => reported.push(error) });
    const events = await advanceUntilSettled(time, eventsOf(post(app, "/runs", { prompt: "Hi" })));
    const { run } = first("run.started", events);
    assertEquals([events.at(-1)?.type, reported], ["run.finished", []]);
    assertEquals(await recordOf(store, run), events);
    const [begun, ...others] = appends.map(({ events }) => events.first);
    assertEquals([begun, others.slice(0, 3), new Set(others.slice(2)).size], [1, [3, 3, 3], others.length - 2]);
  }
});

Deno.test("serve() stops a run that cannot be stored, and reports it to onError", async () => {
  using time = new FakeTime();
  const ended = Promise.withResolvers<Event>();
  const reported: unknown[] = [];
  let down = false;
  const { model, release } = stepping("One.", "Two.");
  const app = serve(
    agent({ model, observe: (event) => event.type === "run.aborted" && ended.resolve(event) }),
    {
      store: durable(failingAppends(memory(), () => down)),
      heartbeat: 60_000,
      onError: (error, { run }) =>
        error instanceof SlowStoreError || reported.push([error instanceof Error && error.message, run]),
    },
  );
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const { run } = first("run.started", framesOf(await pieces.until("model.started")));
  down = true;
  release(0);
  const last = await advanceUntilSettled(time, ended.promise);
  assertEquals("reason" in last && last.reason, "unrecorded");
  assertEquals([framesOf(await pieces.rest()), reported[0]], [[], ["The store is down", run]]);
  assertEquals(reported, reported.map(() => reported[0])); // each append that fails is reported
});

Deno.test("serve() continues if onError throws", async () => {
  using time = new FakeTime();
  const app = serve(agent({ model: scripted("Hello!") }), {
    store: durable(failingAppends(memory(), (_, { from }) => from !== undefined)),
    heartbeat: 60_000,
    onError() {
      throw new Error("The operator is down");
    },
  });
  const response = await post(app, "/runs", { prompt: "Hi" });
  assertEquals(framesOf(await advanceUntilSettled(time, response.text()))[0]?.type, "run.started");
  assertEquals((await app.request("/health")).status, 200);
});

Deno.test("serve() answers with an error if the first append fails", async () => {
  using time = new FakeTime();
  const reported: unknown[] = [];
  const store = { ...memory(), journal: failingAppends(memory(), () => true) };
  const app = serve(agent({ model: scripted("Hello!") }), { store, onError: (error) => reported.push(error) });
  const [status, error] = await advanceUntilSettled(time, refusalOf(post(app, "/runs", { prompt: "Hi" })));
  assertEquals([status, Object(error).code, reported.map(String)], [500, "internal", ["Error: The store is down"]]);
});

Deno.test("the response of a wire whose store fails ends with the code unavailable, and says nothing about a shutdown", async () => {
  using time = new FakeTime();
  let down = false;
  const store = { ...memory(), journal: failingAppends(memory(), () => down) };
  const { model, release } = stepping("One.", "Two.");
  const app = serve(agent({ model }), { store, wires: [chatCompletions()], onError() {} });
  const messages = [{ role: "user", content: "Hi" }];
  const response = await post(app, "/v1/chat/completions", { model: "agent", messages, stream: true });
  down = true;
  release(0);
  const text = await advanceUntilSettled(time, response.text());
  assertStringIncludes(text, "The server stopped sending the events of the run");
});

/** A store whose appends fail while `isDown` returns true, in memory and durable. */
function failingStores(isDown: (key: string, append: Append) => boolean): readonly (readonly [string, Store])[] {
  return [
    ["in memory", { ...memory(), journal: failingAppends(memory(), isDown) }],
    ["that is durable", durable(failingAppends(memory(), isDown))],
  ];
}

for (const named of ["in memory", "that is durable"]) {
  Deno.test(`a run whose first events cannot be stored executes no tool, and leaves a session ${named} as it was`, async () => {
    using time = new FakeTime();
    let down = false;
    const [, store] = failingStores(() => down).find(([name]) => name === named) ?? [];
    if (!store) throw new Error("Cannot find the store");
    let paid = 0;
    const pay = tool({ name: "pay", description: "", input: z.object({}), execute: () => `${++paid}` });
    const paying = () => agent({ model: scripted({ calls: [["pay", {}]] }, "Paid."), tools: [pay] });
    const options: ServeOptions = { store, onError() {} };
    const hello = serve(agent({ model: scripted("Hello.") }), options);
    const { session } = first("run.started", await eventsOf(post(hello, "/runs", { prompt: "Hi" })));
    const before = (await store.load(session))?.messages;
    down = true;
    const refused = post(serve(paying(), options), "/runs", { prompt: "Pay", session });
    const response = await advanceUntilSettled(time, refused);
    assertEquals([response.status, paid], [named === "in memory" ? 500 : 503, 0]);
    assertEquals((await store.load(session))?.messages, before);
    down = false;
    const events = await advanceUntilSettled(
      time,
      eventsOf(post(serve(paying(), options), "/runs", { prompt: "Pay", session })),
    );
    assertEquals([events.at(-1)?.type, paid], ["run.finished", 1]);
  });
}

Deno.test("a request whose first events could not be stored begins a run when it is sent again with its key", async () => {
  using time = new FakeTime();
  let down = false;
  let session = "";
  const kept = memory();
  const store = { ...kept, journal: failingAppends(kept, (key) => down && key === journalKey(undefined, session)) };
  const app = serve(agent({ model: scripted("Hello.", "Again.") }), { store, onError() {} });
  ({ session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" }))));
  const send = () => post(app, "/runs", { prompt: "And?", session }, { "idempotency-key": "k1" });
  down = true;
  assertEquals((await advanceUntilSettled(time, send())).status, 500);
  assertEquals((await store.load(session))?.messages.length, 2);
  down = false;
  const { text } = first("run.finished", await advanceUntilSettled(time, eventsOf(send())));
  assertEquals([text, (await store.load(session))?.messages.length], ["Again.", 4]);
});

/** A model that produces text as fast as it is read. */
function eager() {
  const text = "x".repeat(8_192);
  const produced = { count: 0 };
  const model: Model = {
    id: "eager",
    async *stream() {
      for (; produced.count < 100; produced.count++) yield [{ type: "text", text }];
      yield [{ type: "finish", reason: "stop" }];
    },
  };
  return { model, produced };
}

Deno.test("serve() reads the model no faster than its store accepts", async () => {
  const gate = Promise.withResolvers<void>();
  const { store, begun } = watched(async (journal, key, append) => {
    if (typesIn(append).includes("text.delta")) {
      deltas.resolve();
      await gate.promise;
    }
    return await journal.append(key, append);
  });
  const deltas = Promise.withResolvers<void>();
  const { model, produced } = eager();
  const text = post(serve(agent({ model }), { store }), "/runs", { prompt: "Hi" }).then((response) => response.text());
  await begun(2);
  await deltas.promise;
  await turns();
  const before = produced.count;
  await turns();
  assertEquals(produced.count, before);
  assertLess(produced.count, 30);
  gate.resolve();
  assertEquals(framesOf(await text).filter(({ type }) => type === "text.delta").length, 100);
});

Deno.test("serve() reads the model no faster than a slow client, and without limit once the client has gone", async () => {
  const ended = Promise.withResolvers<string>();
  const { model, produced } = eager();
  const options: ServeOptions = { onClientGone: "detach" };
  const observe = (event: Event) => event.type === "run.finished" && ended.resolve(event.text);
  const app = serve(agent({ model, observe: (event) => void observe(event) }), options);
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  await pieces.next();
  await turns();
  const before = produced.count;
  await turns();
  assertEquals(produced.count, before);
  assertLess(produced.count, 50);
  await pieces.cancel();
  assertEquals((await ended.promise).length, 100 * 8_192);
});

/** Lets the event loop turn several times. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 2));
}

for (const named of ["in memory", "that is durable"]) {
  Deno.test(`a pause in a session ${named} stays if its answers, or a prompt in its place, cannot be stored`, async () => {
    using time = new FakeTime();
    let down = false;
    const [, store] = failingStores(() => down).find(([name]) => name === named) ?? [];
    if (!store) throw new Error("Cannot find the store");
    let paid = 0;
    const pay = tool({ name: "pay", description: "", input: z.object({}), ask: true, execute: () => `${++paid}` });
    const model = scripted({ calls: [{ id: "c1", name: "pay", input: {} }] }, "Paid.", "Paid.", "Paid.");
    const app = serve(agent({ model, tools: [pay] }), { store, onError() {} });
    const asked = await eventsOf(post(app, "/runs", { prompt: "Pay" }));
    const { session, run } = first("run.started", asked);
    const at = first("run.paused", asked).id;
    const answer = (type: "approve" | "deny") => {
      return post(app, `/sessions/${session}/answers`, { run, at, answers: [{ callId: "c1", type }] });
    };
    const before = await store.load(session);
    down = true;
    const prompt = () => post(app, "/runs", { prompt: "Well?", session });
    for (const request of [() => answer("approve"), () => answer("deny"), prompt]) {
      assertEquals((await advanceUntilSettled(time, request())).status, named === "in memory" ? 500 : 503);
      assertEquals([await store.load(session), paid], [before, 0]);
    }
    down = false;
    const events = await advanceUntilSettled(time, eventsOf(answer("approve")));
    assertEquals([events[0]?.id, events.at(-1)?.type, paid], [at + 1, "run.finished", 1]);
  });
}
