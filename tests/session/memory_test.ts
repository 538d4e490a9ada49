import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { agent, memory, type Model, serve, user } from "@jizai/jizai";
import { memoryLog } from "@jizai/jizai/session/log";
import { logLaws, storeLaws } from "@jizai/jizai/testing";
import { eventsOf, post } from "../support/requests.ts";

Deno.test("memory() keeps the laws of stores", async () => {
  using time = new FakeTime();
  await storeLaws(memory, { pass: (ms) => time.tick(ms) });
});

Deno.test("memoryLog() keeps the laws of logs", async () => {
  using time = new FakeTime();
  await logLaws(memoryLog, { pass: (ms) => time.tick(ms) });
});

Deno.test("memory() forgets the session that was saved longest ago when there are too many", async () => {
  const store = memory({ max: 2 });
  for (const id of ["a", "b"]) await store.save({ id, version: 0, messages: [user(id)] });
  await store.save({ id: "a", version: 1, messages: [user("again")] });
  await store.save({ id: "c", version: 0, messages: [] });
  assertEquals(await store.list(), ["a", "c"]);
});

Deno.test("memory() keeps what it has where it is given what JSON cannot say", async () => {
  const store = memory();
  await store.save({ id: "a", version: 0, messages: [] });
  const message = { role: "user", parts: [{ type: "text", text: "Hi" }], size: 1n } as const;
  await assertRejects(() => store.save({ id: "a", version: 1, messages: [message] }), TypeError);
  assertEquals(await store.load("a"), { id: "a", version: 1, messages: [] });
});

Deno.test("memoryLog() forgets the run that was added to longest ago when there are too many", async () => {
  const log = memoryLog({ max: 2 });
  for (const run of ["a", "b"]) await log.append(run, { after: 0, lines: ["1"], ended: true });
  await log.append("a", { after: 1, lines: ["2"], ended: true });
  await log.append("c", { after: 0, lines: ["1"], ended: true });
  assertEquals(await log.read("b", 0), undefined);
  assertEquals((await log.read("a", 0))?.last, 2);
});

Deno.test("memory() and memoryLog() forget no run that goes on, however many there are", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const held: Model = {
    id: "held",
    async *stream() {
      await released;
      yield [{ type: "text", text: "Hello!" }, { type: "finish", reason: "stop" }];
    },
  };
  const app = serve(agent({ model: held }), { store: memory({ max: 2 }), log: memoryLog({ max: 2 }) });
  const runs = Array.from({ length: 5 }, () => post(app, "/runs", { prompt: "Hi" }));
  const streams = await Promise.all(runs); // each has begun, and none has ended
  release();
  const ends = await Promise.all(streams.map(async (stream) => (await eventsOf(stream)).at(-1)?.type));
  assertEquals(ends, Array(5).fill("run.finished"));
});

Deno.test("memoryLog() forgets a run after ten minutes", async () => {
  using time = new FakeTime();
  const log = memoryLog();
  await log.append("a", { after: 0, lines: ["1"], ended: true });
  time.tick(599_999);
  assertEquals((await log.read("a", 0))?.last, 1);
  time.tick(1);
  assertEquals(await log.read("a", 0), undefined);
});
