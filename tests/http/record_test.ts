import { agent, type Event, memory, type Model, serve, type ServeOptions, tool } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { type Addition, type Log, memoryLog } from "@jizai/jizai/session/log";
import { chatCompletions } from "@jizai/jizai/wire/openai";
import { assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { drop } from "../support/asking.ts";
import * as z from "zod";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { shared } from "../support/process.ts";
import { eventsOf, first, type Framed, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { storedProgress, storedRun } from "../support/stored_run.ts";
import { saving } from "../support/saving.ts";

/** A log with another `append`, which records the additions; `added(n)` resolves after `n` additions. */
function watched(append: (log: Log, run: string, addition: Addition) => Promise<boolean>) {
  const additions: Addition[] = [];
  const gates = new Map<number, PromiseWithResolvers<void>>();
  const gateOf = (count: number) => gates.getOrInsertComputed(count, () => Promise.withResolvers<void>());
  const log = memoryLog();
  const watching: Log = {
    ...log,
    append(run, addition) {
      gateOf(additions.push(addition)).resolve();
      return append(log, run, addition);
    },
  };
  return { log: watching, additions, added: (count: number) => gateOf(count).promise };
}

/** Returns the logged events of a run, with their numbers. */
async function recordOf(log: Log, run: string): Promise<Framed[]> {
  const { lines = [], first = 1 } = await log.read(run, 0) ?? {};
  return lines.map((line, index) => ({ ...JSON.parse(line), id: first + index }));
}

/** A model that answers `texts`, each once it is released. */
function stepping(...texts: readonly string[]) {
  const steps = texts.map((text) => ({ text, gate: Promise.withResolvers<void>() }));
  const model: Model = {
    id: "stepping",
    async *stream() {
      for (const { text, gate } of steps) {
        await gate.promise;
        yield [{ type: "text", text }];
      }
      yield [{ type: "finish", reason: "stop" }];
    },
  };
  return { model, release: (step: number) => steps[step]?.gate.resolve() };
}

Deno.test("serve() logs exactly what it streams", async () => {
  const log = memoryLog();
  const app = serve(agent({ model: scripted({ text: ["Hel", 'lo "自在鉤"!\u2028'] }) }), { log });
  const text = await (await post(app, "/runs", { prompt: "Hi" })).text();
  const { run } = first("run.started", framesOf(text));
  const { first: number, lines = [], ended } = await log.read(run, 0) ?? {};
  assertEquals([number, ended], [1, true]);
  assertEquals(lines.map((line, index) => `id: ${index + 1}\ndata: ${line}\n\n`).join(""), text);
});

Deno.test("serve() streams the same with and without a log", async () => {
  const model = () => scripted({ reasoning: ["H", "m."], text: "See.", calls: [["drop", { table: "a" }]] }, "Done.");
  const both = [{}, {}].map(async (options) => {
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

Deno.test("serve() sends no event before it is logged", async () => {
  let gate = Promise.withResolvers<void>();
  const { log, additions, added } = watched(async (log, run, addition) => {
    await gate.promise;
    return await log.append(run, addition);
  });
  const { model, release } = stepping("One.", "Two.");
  const responding = post(serve(agent({ model }), { log }), "/runs", { prompt: "Hi" });
  let responded = false;
  responding.then(() => responded = true);
  await added(1);
  await turns();
  assertEquals([responded, additions.length], [false, 1]); // not even the headers have been sent

  gate.resolve();
  const pieces = piecesOf(await responding);
  await pieces.until("model.started");
  gate = Promise.withResolvers();
  release(0);
  let received: string | undefined;
  const receiving = pieces.next().then((piece) => received = piece);
  await added(2);
  await turns();
  assertEquals([received, additions.length], [undefined, 2]);
  gate.resolve();
  await receiving;
  assertEquals(framesOf(received ?? "").map(({ type }) => type), ["text.delta"]);
  release(1);
  await pieces.rest();
});

Deno.test("serve() logs together the events that were emitted during an append", async () => {
  const gates = Array.from({ length: 9 }, () => Promise.withResolvers<void>());
  const { log, additions, added } = watched(async (log, run, addition) => {
    await gates[additions.length - 1]?.promise;
    return await log.append(run, addition);
  });
  const { model, release } = stepping("a", "b", "c", "d");
  gates[0]?.resolve();
  const pieces = piecesOf(await post(serve(agent({ model }), { log }), "/runs", { prompt: "Hi" }));
  const begun = await pieces.until("model.started");
  release(0);
  await added(2);
  for (const step of [1, 2, 3]) release(step);
  await turns();
  assertEquals(additions.map(({ after, ended }) => [after, ended]), [[0, false], [5, false]]);
  gates[1]?.resolve();
  await added(3);
  assertEquals(typesOf(additions[2]), [
    "text.delta",
    "text.delta",
    "text.delta",
    "model.finished",
    "turn.finished",
    "session.closed",
  ]);
  gates[2]?.resolve();
  gates[3]?.resolve();
  const text = begun + await pieces.rest();
  assertEquals(framesOf(text).map(({ id }) => id), Array.from({ length: 13 }, (_, index) => index + 1));
  assertEquals(additions.map(({ after, lines, ended }) => [after, lines.length, ended]), [
    [0, 5, false],
    [5, 1, false],
    [6, 6, false],
    [12, 1, true],
  ]);
});

Deno.test("serve() logs every end of a run, and its continuation", async () => {
  const ends: readonly (readonly [type: string, model: Model])[] = [
    ["run.finished", scripted("Hello!")],
    ["run.failed", scripted({ error: new Error("down") })],
    ["run.paused", scripted({ calls: [["drop", { table: "a" }]] }, "Done.")],
  ];
  for (const [type, model] of ends) {
    const { log, additions } = watched((log, run, addition) => log.append(run, addition));
    const app = serve(agent({ model, tools: [drop] }), { log });
    const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    assertEquals(events.at(-1)?.type, type);
    assertEquals(additions.map(({ ended }) => ended), additions.map((_, index) => index === additions.length - 1));
    if (type !== "run.paused") continue;
    const { session, run } = first("run.started", events);
    const answers = [{ callId: "call_1", type: "approve" }];
    events.push(...await eventsOf(post(app, `/sessions/${session}/answers`, { answers })));
    assertEquals(additions.filter(({ ended }) => ended).length, 2);
    assertEquals(await recordOf(log, run), events);
  }
});

Deno.test("serve() stops a run whose log another process writes, and sends no further events", async () => {
  const ended = Promise.withResolvers<Event>();
  const { model, release } = stepping("One.", "Two.", "Three.");
  const { store, log } = shared();
  const app = serve(
    agent({ model, observe: (event) => event.type === "run.aborted" && ended.resolve(event) }),
    { store, log, onClientGone: "detach" },
  );
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  release(0);
  const before = framesOf(await pieces.until("One."));
  const { run, session } = first("run.started", before);
  await log.append(run, { after: before.length, lines: [`{"type":"notice","text":"Mine."}`], ended: true });
  release(1);
  assertEquals(await pieces.rest(), "");
  release(2);
  const last = await ended.promise;
  assertEquals("reason" in last && last.reason, "lost");
  await turns();
  assertEquals((await recordOf(log, run)).slice(before.length), [{ type: "notice", text: "Mine.", id: 7 }]);
  assertEquals(storedRun(await store.load(session))?.status, "running"); // as the next process finds it
});

Deno.test("serve() logs nothing more of a run after another process took its session", async () => {
  using time = new FakeTime();
  const ended = Promise.withResolvers<void>();
  const { store, log } = shared();
  const { model, release } = stepping("One.", "Two.");
  const app = serve(
    agent({ model, observe: (event) => event.type === "run.aborted" && ended.resolve() }),
    { store, log, onClientGone: "detach" },
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
  assertEquals([await pieces.rest(), await recordOf(log, run)], ["", before]);
});

Deno.test("serve() streams the end of a run that another process has logged", async () => {
  const { log } = watched(async (log, run, addition) => {
    const [line = ""] = addition.lines;
    if (line.includes("run.finished")) await log.append(run, addition);
    return await log.append(run, addition);
  });
  const app = serve(agent({ model: scripted("Hello!") }), { log });
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  assertEquals(await recordOf(log, first("run.started", events).run), events);
  assertEquals(events.at(-1)?.type, "run.finished");
});

Deno.test("serve() saves nothing of a run before it is logged", async () => {
  const reported: string[] = [];
  const { store, log } = shared();
  const append = async (run: string, addition: Addition) => {
    await turns();
    reported.push(...addition.lines.map((line) => JSON.parse(line).type));
    return await log.append(run, addition);
  };
  const saves = saving(store, (session, save) => {
    reported.push(`save ${storedProgress(session)}`);
    return save();
  });
  const model = scripted({ calls: [["drop", { table: "a" }]] }, "Done.");
  const tools = [{ ...drop, ask: false }];
  const app = serve(agent({ model, tools }), { store: { ...store, journal: saves }, log: { ...log, append } });
  await eventsOf(post(app, "/runs", { prompt: "Go" }));
  assertEquals(reported, [
    ...[
      "save prompt",
      "run.started",
      "session.opened",
      "save model",
      "prompt.accepted",
      "turn.started",
      "model.started",
    ],
    ...[
      "call.delta",
      "call.ready",
      "model.finished",
      "tool.started",
      "approval.decided",
      "save tools running",
    ],
    ...[
      "tool.finished",
      "turn.finished",
      "save model",
      "turn.started",
      "model.started",
      "text.delta",
      "model.finished",
    ],
    ...["turn.finished", "session.closed", "save end", "run.finished"],
  ]);
});

Deno.test("serve() retries a failed append, and appends nothing twice", async () => {
  using time = new FakeTime();
  for (const added of [false, true]) {
    let failures = 0;
    const { log, additions } = watched(async (log, run, addition) => {
      const fails = addition.after > 0 && ++failures <= 2;
      if (fails && !added) throw new Error("The log is down");
      const done = await log.append(run, addition);
      if (fails) throw new Error("The answer of the log was lost");
      return done;
    });
    const reported: unknown[] = [];
    const app = serve(agent({ model: scripted("Hello!") }), { log, onError: (error) => reported.push(error) });
    const events = await advanceUntilSettled(time, eventsOf(post(app, "/runs", { prompt: "Hi" })));
    const { run } = first("run.started", events);
    assertEquals([events.at(-1)?.type, reported], ["run.finished", []]);
    assertEquals(await recordOf(log, run), events);
    assertEquals(additions.map(({ after }) => after), [0, 6, 6, 6, events.length - 1]);
  }
});

Deno.test("serve() stops a run that cannot be logged, and reports it to onError", async () => {
  using time = new FakeTime();
  const ended = Promise.withResolvers<Event>();
  const reported: unknown[] = [];
  const { log } = watched((log, run, addition) => {
    return addition.after === 0 ? log.append(run, addition) : Promise.reject(new Error("The log is down"));
  });
  const { model, release } = stepping("One.", "Two.");
  const app = serve(
    agent({ model, observe: (event) => event.type === "run.aborted" && ended.resolve(event) }),
    {
      log,
      onError: (error, { run }) => reported.push([error instanceof Error && error.message, run]),
    },
  );
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const { run } = first("run.started", framesOf(await pieces.until("model.started")));
  release(0);
  const last = await advanceUntilSettled(time, ended.promise);
  assertEquals("reason" in last && last.reason, "unrecorded");
  assertEquals([await pieces.rest(), reported], ["", [["The log is down", run]]]);
});

Deno.test("serve() continues if onError throws", async () => {
  using time = new FakeTime();
  const { log } = watched((log, run, addition) => {
    return addition.after === 0 ? log.append(run, addition) : Promise.reject(new Error("The log is down"));
  });
  const app = serve(agent({ model: scripted("Hello!") }), {
    log,
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
  const { log } = watched(() => Promise.reject(new Error("The log is down")));
  const app = serve(agent({ model: scripted("Hello!") }), { log, onError: (error) => reported.push(error) });
  const [status, error] = await advanceUntilSettled(time, refusalOf(post(app, "/runs", { prompt: "Hi" })));
  const message = "Cannot run this: its events could not be logged";
  assertEquals([status, error, reported.length], [503, { code: "unrecorded", message }, 1]);
});

Deno.test("the response of a wire whose log fails ends with the code unavailable, and says nothing about a shutdown", async () => {
  using time = new FakeTime();
  const { log } = watched((log, run, addition) => {
    return addition.after === 0 ? log.append(run, addition) : Promise.reject(new Error("The log is down"));
  });
  const { model, release } = stepping("One.", "Two.");
  const app = serve(agent({ model }), { log, wires: [chatCompletions()], onError() {} });
  const messages = [{ role: "user", content: "Hi" }];
  const response = await post(app, "/v1/chat/completions", { model: "agent", messages, stream: true });
  release(0);
  const text = await advanceUntilSettled(time, response.text());
  assertStringIncludes(text, "The server stopped sending the events of the run");
});

for (const [named, store] of [["in memory", memory()], ["that is durable", durable(memory().journal)]] as const) {
  Deno.test(`a run whose first events cannot be logged executes no tool, and leaves a session ${named} as it was`, async () => {
    using time = new FakeTime();
    let down = false;
    const { log } = watched((log, run, addition) => {
      return down ? Promise.reject(new Error("The log is down")) : log.append(run, addition);
    });
    let paid = 0;
    const pay = tool({ name: "pay", description: "", input: z.object({}), execute: () => `${++paid}` });
    const paying = () => agent({ model: scripted({ calls: [["pay", {}]] }, "Paid."), tools: [pay] });
    const options: ServeOptions = { store, log, onError() {} };
    const hello = serve(agent({ model: scripted("Hello.") }), options);
    const { session } = first("run.started", await eventsOf(post(hello, "/runs", { prompt: "Hi" })));
    const before = (await store.load(session))?.messages;
    down = true;
    const refused = post(serve(paying(), options), "/runs", { prompt: "Pay", session });
    const response = await advanceUntilSettled(time, refused);
    assertEquals([response.status, paid], [503, 0]);
    assertEquals((await store.load(session))?.messages, before);
    down = false;
    const events = await advanceUntilSettled(
      time,
      eventsOf(post(serve(paying(), options), "/runs", { prompt: "Pay", session })),
    );
    assertEquals([events.at(-1)?.type, paid], ["run.finished", 1]);
  });
}

Deno.test("a request whose first events could not be logged begins a run when it is sent again with its key, also if the log keeps the key", async () => {
  using time = new FakeTime();
  let down = false;
  const { log } = watched((log, run, addition) => {
    const isKey = run.startsWith("key:");
    return down && !isKey ? Promise.reject(new Error("The log is down")) : log.append(run, addition);
  });
  log.delete = () => Promise.reject(new Error("The log is down")); // the key cannot be freed
  const store = memory();
  const app = serve(agent({ model: scripted("Hello.", "Lost.", "Again.") }), { store, log, onError() {} });
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  const send = () => post(app, "/runs", { prompt: "And?", session }, { "idempotency-key": "k1" });
  down = true;
  assertEquals((await advanceUntilSettled(time, send())).status, 503);
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

Deno.test("serve() reads the model no faster than its log accepts", async () => {
  const gate = Promise.withResolvers<void>();
  const { log, added } = watched(async (log, run, addition) => {
    if (addition.after > 0) await gate.promise;
    return await log.append(run, addition);
  });
  const { model, produced } = eager();
  const text = post(serve(agent({ model }), { log }), "/runs", { prompt: "Hi" }).then((response) => response.text());
  await added(2);
  await turns();
  const before = produced.count;
  await turns();
  assertEquals(produced.count, before);
  assertLess(produced.count, 30);
  gate.resolve();
  assertEquals(framesOf(await text).filter(({ type }) => type === "text.delta").length, 100);
});

Deno.test("serve() with a log reads the model no faster than a slow client, and without limit once the client has gone", async () => {
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

function typesOf(addition: Addition | undefined): string[] {
  return (addition?.lines ?? []).map((line) => JSON.parse(line).type);
}

/** Lets the event loop turn several times. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 2));
}

for (const [named, store] of [["in memory", memory()], ["that is durable", durable(memory().journal)]] as const) {
  Deno.test(`a pause in a session ${named} stays if its answers, or a prompt in its place, cannot be logged`, async () => {
    using time = new FakeTime();
    let down = false;
    const { log } = watched((log, run, addition) => {
      return down ? Promise.reject(new Error("The log is down")) : log.append(run, addition);
    });
    let paid = 0;
    const pay = tool({ name: "pay", description: "", input: z.object({}), ask: true, execute: () => `${++paid}` });
    const model = scripted({ calls: [{ id: "c1", name: "pay", input: {} }] }, "Paid.", "Paid.", "Paid.");
    const app = serve(agent({ model, tools: [pay] }), { store, log, onError() {} });
    const asked = await eventsOf(post(app, "/runs", { prompt: "Pay" }));
    const { session, run } = first("run.started", asked);
    const at = first("run.paused", asked).id;
    const answer = (type: "approve" | "deny") => {
      return post(app, `/sessions/${session}/answers`, { run, at, answers: [{ callId: "c1", type }] });
    };
    const { version: _, ...before } = await store.load(session) ?? { version: 0 };
    down = true;
    const prompt = () => post(app, "/runs", { prompt: "Well?", session });
    for (const request of [() => answer("approve"), () => answer("deny"), prompt]) {
      assertEquals((await advanceUntilSettled(time, request())).status, 503);
      const { version: __, ...after } = await store.load(session) ?? { version: 0 };
      assertEquals([after, paid], [before, 0]);
    }
    down = false;
    const events = await advanceUntilSettled(time, eventsOf(answer("approve")));
    assertEquals([events[0]?.id, events.at(-1)?.type, paid], [at + 1, "run.finished", 1]);
  });
}

Deno.test("a pause whose events could not be logged is answered with its number in the record", async () => {
  using time = new FakeTime();
  let down = true;
  const { log } = watched((log, run, addition) => {
    return down && addition.after > 0 ? Promise.reject(new Error("The log is down")) : log.append(run, addition);
  });
  const pay = tool({ name: "pay", description: "", input: z.object({}), ask: true, execute: () => "paid" });
  const model = scripted({ calls: [{ id: "c1", name: "pay", input: {} }] }, "Paid.");
  const store = durable(memory().journal);
  const app = serve(agent({ model, tools: [pay] }), { store, log, onError() {} });
  const received = framesOf(
    await advanceUntilSettled(time, post(app, "/runs", { prompt: "Pay" }).then((r) => r.text())),
  );
  const { run, session } = first("run.started", received);
  await app.settled();
  down = false;
  const headers = { "last-event-id": `${received.length}` };
  const paused = first(
    "run.paused",
    await advanceUntilSettled(time, eventsOf(app.request(`/runs/${run}`, { headers }))),
  );
  const answers = [{ callId: "c1", type: "approve" }];
  const rest = await advanceUntilSettled(
    time,
    eventsOf(post(app, `/sessions/${session}/answers`, { run, at: paused.id, answers })),
  );
  assertEquals([rest[0]?.id, rest.at(-1)?.type], [paused.id + 1, "run.finished"]);
});
