import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { FakeTime, TimeError } from "@std/testing/time";

Deno.test("timers run in order, and those due together in the order in which they were set", () => {
  using time = new FakeTime(1_000);
  const seen: [string, number][] = [];
  const note = (name: string) => () => seen.push([name, Date.now()]);
  setTimeout(note("late"), 30);
  setTimeout(note("first"), 10);
  setTimeout(note("second"), 10);
  const every = setInterval(note("every"), 10);
  clearTimeout(setTimeout(note("cleared"), 5));
  time.tick(30);
  clearInterval(every);
  time.tick(100);
  assertEquals(seen, [
    ["first", 1_010],
    ["second", 1_010],
    ["every", 1_010],
    ["every", 1_020],
    ["late", 1_030],
    ["every", 1_030],
  ]);
  assertEquals(time.now, 1_130);
});

Deno.test("a timer that throws stops time at its due time", () => {
  using time = new FakeTime(0);
  setTimeout(() => {
    throw new Error("boom");
  }, 10);
  assertThrows(() => time.tick(50), Error, "boom");
  assertEquals(time.now, 10);
});

Deno.test("a timer that a timer sets is run", async () => {
  using time = new FakeTime(0);
  const seen: number[] = [];
  setTimeout(() => {
    void Promise.resolve().then(() => setTimeout(() => seen.push(Date.now()), 5));
  }, 10);
  await time.runAllAsync();
  assertEquals([seen, time.now, time.next()], [[15], 15, false]);
});

Deno.test("AbortSignal.timeout() fires in fake time", () => {
  using time = new FakeTime();
  const signal = AbortSignal.any([AbortSignal.timeout(5_000)]);
  time.tick(4_999);
  assert(!signal.aborted);
  time.tick(1);
  assertEquals([signal.reason.name, signal.reason.message], ["TimeoutError", "Signal timed out."]);
});

Deno.test("dates show fake time, and are dates", () => {
  const real = new Date(5);
  using _time = new FakeTime("2026-01-02T03:04:05Z");
  assertEquals(new Date().toISOString(), "2026-01-02T03:04:05.000Z");
  assert(real instanceof Date && new Date() instanceof Date);
});

Deno.test("time can be faked once at a time, and restored", () => {
  const { Date, setTimeout } = globalThis;
  const time = new FakeTime();
  assertThrows(() => new FakeTime(), TimeError, "Cannot construct FakeTime");
  assertThrows(() => time.tick(-1), RangeError, "Cannot set current time");
  time.restore();
  assertThrows(() => time.restore(), TimeError, "Cannot restore time");
  assertStrictEquals(globalThis.Date, Date);
  assertStrictEquals(globalThis.setTimeout, setTimeout);
});

Deno.test("restoreFor() gives real time to a callback", async () => {
  const { setTimeout } = globalThis;
  using _ = new FakeTime(5);
  const given = await FakeTime.restoreFor((word: string) => {
    assertStrictEquals(globalThis.setTimeout, setTimeout);
    return Promise.resolve([word, Date.now() > 5]);
  }, "real");
  assertEquals([given, Date.now()], [["real", true], 5]);
});

Deno.test("advanceRate lets fake time run on", async () => {
  using time = new FakeTime(0, { advanceRate: 1_000, advanceFrequency: 1 });
  await time.delay(10);
  assert(time.now >= 1_000);
});

Deno.test("a delay ends when its signal aborts", async () => {
  using time = new FakeTime();
  const controller = new AbortController();
  const delayed = time.delay(60_000, { signal: controller.signal });
  await time.runMicrotasks();
  controller.abort();
  assertEquals(await delayed.catch(({ name }) => name), "AbortError");
});
