import { agent, type Model, serve } from "../../mod.ts";
import { scripted } from "../../src/model/scripted.ts";
import { assertEquals, assertLess } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { barrier, settled } from "../support/batch.ts";
import { waiting } from "../support/halting.ts";
import { eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";

const usage = { input: 1, output: 1 };

Deno.test("serve() streams the events of a run, each as one numbered frame", async () => {
  const app = serve(agent({ model: scripted({ text: ["Hel", "lo!"] }) }));
  const text = await (await post(app, "/runs", { prompt: "Hi" })).text();

  const { run, session } = first("run.started", framesOf(text));
  const events = [
    { type: "run.started", run, session, resumed: false },
    { type: "session.opened", source: "new" },
    { type: "prompt.accepted", prompt: { role: "user", parts: [{ type: "text", text: "Hi" }] } },
    { type: "turn.started", turn: 1 },
    { type: "model.started", turn: 1, model: "scripted" },
    { type: "text.delta", turn: 1, part: 0, text: "Hel" },
    { type: "text.delta", turn: 1, part: 0, text: "lo!" },
    { type: "model.finished", turn: 1, finish: "stop", usage, attempts: 1 },
    { type: "turn.finished", turn: 1 },
    { type: "session.closed" },
    { type: "run.finished", status: "done", text: "Hello!", usage, finish: "stop" },
  ];
  assertEquals(text, events.map((event, index) => `id: ${index + 1}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
});

Deno.test("serve() sends headers that keep proxies from storing, changing or buffering a stream", async () => {
  const response = await post(serve(agent({ model: scripted("Hello!") })), "/runs", { prompt: "Hi" });
  await response.text();
  assertEquals(response.status, 200);
  assertEquals(Object.fromEntries(response.headers), {
    "cache-control": "no-store, no-transform",
    "content-type": "text/event-stream",
    "x-accel-buffering": "no",
  });
});

Deno.test("serve() sends waiting events as one chunk", async () => {
  const ended = Promise.withResolvers<void>();
  const observe = (event: { readonly type: string }) => event.type === "run.finished" && ended.resolve();
  const app = serve(agent({ model: scripted("Hello!"), observe: (event) => void observe(event) }));
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  await ended.promise;
  assertEquals(framesOf(await pieces.next() ?? "").length, 10);
  assertEquals(await pieces.next(), undefined);
});

Deno.test("serve() sends the events of one read of the model as one chunk", async () => {
  const deltas = ["a", "b", "c"].map((text) => ({ type: "text", text } as const));
  const read = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  const model: Model = {
    id: "model",
    async *stream() {
      await read.promise;
      yield deltas;
      await sent.promise;
      yield [{ type: "finish", reason: "stop" }];
    },
  };
  const pieces = piecesOf(await post(serve(agent({ model })), "/runs", { prompt: "Hi" }));
  await pieces.until("model.started");
  const chunk = pieces.next();
  await settled(); // until the reader waits
  read.resolve();
  assertEquals(framesOf(await chunk ?? "").map((event) => "text" in event && event.text), ["a", "b", "c"]);
  sent.resolve();
  await pieces.rest();
});

Deno.test("serve() sends a comment after 8 seconds of silence, and none once the run has ended", async () => {
  using time = new FakeTime();
  const silence = Promise.withResolvers<void>();
  const app = serve(agent({ model: scripted({ before: () => silence.promise, text: "Hello!" }) }));
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  await pieces.until("model.started");

  for (let beats = 0; beats < 3; beats++) {
    let beaten = false;
    const beat = pieces.next().finally(() => beaten = true);
    await time.tickAsync(7_999);
    await time.runMicrotasks();
    assertEquals(beaten, false);
    await time.tickAsync(1);
    assertEquals(await beat, ":\n\n");
  }

  silence.resolve();
  assertEquals(framesOf(await pieces.rest()).at(-1)?.type, "run.finished");
  assertEquals(time.next(), false);
});

Deno.test("serve() sends a comment after the heartbeat option's silence", async () => {
  using time = new FakeTime();
  const app = serve(agent({ model: waiting() }), { heartbeat: 1_000 });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  await pieces.until("text.delta");
  const beat = pieces.next();
  await time.tickAsync(1_000);
  assertEquals(await beat, ":\n\n");
  await pieces.cancel();
  await time.runMicrotasks();
  await time.runMicrotasks();
  assertEquals(time.next(), false);
});

Deno.test("serve() reads the model no faster than a slow client", async () => {
  const text = "x".repeat(8_192);
  const reads = 100;
  let asked = 0;
  const model: Model = {
    id: "eager",
    async *stream() {
      for (; asked < reads; asked++) yield [{ type: "text", text }];
      yield [{ type: "finish", reason: "stop" }];
    },
  };
  const pieces = piecesOf(await post(serve(agent({ model })), "/runs", { prompt: "Hi" }));
  const body = await pieces.next() ?? "";
  await settled();
  await settled(); // until the events are stored, too
  const before = asked;
  await settled();
  assertEquals(asked, before);
  assertLess(asked, 20);
  assertEquals(framesOf(body + await pieces.rest()).filter(({ type }) => type === "text.delta").length, reads);
});

Deno.test("serve() streams two runs at the same time", async () => {
  const both = barrier(2);
  const model: Model = {
    id: "echo",
    async *stream({ messages: [message] }) {
      const [part] = message?.role === "user" ? message.parts : [];
      yield [{ type: "text", text: part?.type === "text" ? part.text : "" }];
      await both();
      yield [{ type: "text", text: "." }, { type: "finish", reason: "stop" }];
    },
  };
  const app = serve(agent({ model }));
  const runs = await Promise.all(["one", "two"].map((prompt) => eventsOf(post(app, "/runs", { prompt }))));
  assertEquals(runs.map((events) => first("run.finished", events).text), ["one.", "two."]);
  assertEquals(
    runs.map((events) => events.map(({ id }) => id)),
    [1, 2].map(() => Array.from({ length: 11 }, (_, i) => i + 1)),
  );
});
