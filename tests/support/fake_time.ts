/**
 * Faked time that advances while a test waits.
 *
 * @module
 */
import { type Stub, stub } from "@std/testing/mock";
import type { FakeTime } from "@std/testing/time";
import { setImmediate } from "node:timers"; // it is not faked

/** The timer of real time. */
const { setTimeout } = globalThis;

/** Advances faked time from timer to timer until `work` settles, lets what it left in the background end, such as the packing of a run, and returns its result. */
export async function advanceUntilSettled<T>(time: FakeTime, work: Promise<T>): Promise<T> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  work.then(settle, settle);
  await pendingPromises();
  while (!settled) {
    time.next();
    await pendingPromises();
  }
  for (let ticks = 0; ticks < 3; ticks++) await pendingPromises();
  return await work;
}

/** Waits for pending promises. Unlike `runMicrotasks()`, it leaves the functions in place that replace those of the faked time. */
function pendingPromises(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 0));
}

/**
 * Advances faked time by `ms`, a second at a time, so that code which waits for timers in a row keeps up.
 * Between two seconds, promises settle; `setImmediate` does not wait a millisecond for that, as `setTimeout` does.
 */
export async function advance(time: FakeTime, ms: number): Promise<void> {
  await pendingPromises();
  for (let left = ms; left > 0; left -= 1_000) {
    time.tick(Math.min(left, 1_000));
    await new Promise((resolve) => void setImmediate(resolve));
  }
  await pendingPromises();
}

/** Hashes at once, until it is disposed of: the contents of requests are hashed in another thread, for which `advance()` does not wait. All hashes are equal. */
export function hashAtOnce(): Stub {
  return stub(crypto.subtle, "digest", () => Promise.resolve(new ArrayBuffer(32)));
}
