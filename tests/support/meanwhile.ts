/**
 * Time that passes while something goes on.
 *
 * @module
 */
import type { FakeTime } from "@std/testing/time";

/** What `work` comes to, while faked time moves on from timer to timer, as far as it takes. */
export async function meanwhile<T>(time: FakeTime, work: Promise<T>): Promise<T> {
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

/** Lets faked time pass a second at a time, so that what goes on keeps up with it. */
export async function pass(time: FakeTime, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) await time.tickAsync(Math.min(left, 1_000));
  await time.runMicrotasks();
}
