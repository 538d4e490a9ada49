import { cancellationOf, Locks } from "@jizai/jizai/kit";
import { assertEquals, assertRejects } from "@std/assert";
import { stub } from "@std/testing/mock";
import { FakeTime } from "@std/testing/time";

const never = () => new Promise<never>(() => {});

/** Holds a lock in a request that the platform ends: its timers never fire, and its promises never settle. */
function holdAndEnd(locks: Locks, key: string): void {
  using _ = stub(globalThis, "setTimeout", () => undefined as never); // the caller passes the result on only to clearTimeout()
  locks.hold(key, undefined, never);
}

Deno.test("Locks.hold() gives the lock of a request that the platform has ended to the next one, after a lease", async () => {
  using time = new FakeTime();
  using _ = stub(performance, "now", () => time.now);
  const locks = new Locks(1_000);
  const order: string[] = [];
  const note = (name: string) => () => Promise.resolve(void order.push(name));
  holdAndEnd(locks, "a");
  const held = ["first", "second"].map((name) => locks.hold("a", undefined, note(name)));
  const other = locks.hold("b", undefined, note("other"));
  assertEquals(locks.users("a"), 3);
  await time.tickAsync(1_000);
  assertEquals(order, ["other"]);
  await time.tickAsync(100); // the request may have renewed its lease just before it ended
  await Promise.all([...held, other]);
  assertEquals([order, locks.users("a")], [["other", "first", "second"], 0]);
});

Deno.test("Locks.hold() does not give the lock of a request that works to another one, however long it works", async () => {
  using time = new FakeTime();
  using _ = stub(performance, "now", () => time.now);
  const locks = new Locks(1_000);
  const working = Promise.withResolvers<string>();
  const held = locks.hold("a", undefined, () => working.promise);
  const next = locks.hold("a", undefined, () => Promise.resolve("next"));
  let isNext = false;
  next.then(() => isNext = true);
  await time.tickAsync(100_000);
  assertEquals([isNext, locks.users("a")], [false, 2]);
  working.resolve("held");
  assertEquals(await Promise.all([held, next]), ["held", "next"]);
});

Deno.test("Locks.hold() passes over a waiting request that the platform has ended, and one that was cancelled", async () => {
  using time = new FakeTime();
  using _ = stub(performance, "now", () => time.now);
  const locks = new Locks(1_000);
  const working = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const held = locks.hold("a", undefined, () => working.promise);
  holdAndEnd(locks, "a");
  const cancelled = locks.hold("a", cancellationOf(leaving.signal), never);
  const last = locks.hold("a", undefined, () => Promise.resolve("last"));
  leaving.abort(new Error("left"));
  assertEquals(locks.users("a"), 3);
  await time.tickAsync(0);
  await assertRejects(() => cancelled, Error, "left");
  working.resolve();
  await held;
  await time.tickAsync(1_100);
  assertEquals(await last, "last");
});

Deno.test("Locks.hold() costs each request the same, however many wait for the lock", async () => {
  let looks = 0;
  using _ = stub(performance, "now", () => looks++ && 0);
  const locks = new Locks();
  const working = Promise.withResolvers<void>();
  const leaving = new AbortController();
  const order: number[] = [];
  const held = Array.from({ length: 600 }, (_, index) => {
    const cancellation = index % 3 === 1 ? cancellationOf(leaving.signal) : undefined;
    return locks.hold("a", cancellation, async () => {
      await working.promise;
      order.push(index);
    });
  });
  assertEquals([locks.users("a", 10), locks.users("a")], [10, 600]);
  looks -= 600;
  leaving.abort(new Error("left"));
  working.resolve();
  await Promise.allSettled(held);
  assertEquals(order, Array.from({ length: 400 }, (_, index) => Math.floor(index / 2) * 3 + (index % 2) * 2));
  assertEquals([looks < 600 * 20, locks.users("a")], [true, 0], `${looks} looks at 600 requests`);
});
