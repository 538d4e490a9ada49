/**
 * Faked time that advances while a test waits.
 *
 * @module
 */
import type { FakeTime } from "@std/testing/time";

/** Advances faked time from timer to timer until `work` settles, and returns its result. */
export async function advanceUntilSettled<T>(time: FakeTime, work: Promise<T>): Promise<T> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  work.then(settle, settle);
  await time.runMicrotasks();
  while (!settled) {
    time.next();
    await time.runMicrotasks();
  }
  return await work;
}

/** Advances faked time by `ms`, a second at a time, so that code which waits for timers in a row keeps up. */
export async function advance(time: FakeTime, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) await time.tickAsync(Math.min(left, 1_000));
  await time.runMicrotasks();
}
