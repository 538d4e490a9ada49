/**
 * A session whose run works longer than `expireIn`, as the engine saves it: with a lease that is renewed.
 *
 * @module
 */
import { type Session, type Store, user } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import type { FakeTime } from "@std/testing/time";

/** The `expireIn` of the store. */
export const expireIn = 60_000;

/** Checks that a store keeps a session until `expireIn` after the end of its lease, however often it is renewed, and then deletes it. */
export async function checkLeasedExpiry(
  store: Pick<Store, "save" | "load" | "list" | "pending" | "touch">,
  time: FakeTime,
  afterChange: () => void | Promise<void> = () => {},
): Promise<void> {
  for (const lease of [20_000, 600_000]) {
    const id = `lease ${lease}`;
    let until = Date.now() + lease;
    const messages = [user("Hi ".repeat(30_000))];
    const working = (): Session => ({ id, version: 1, messages, lease: { until } });
    assertEquals(await store.save({ ...working(), version: 0 }), 1);
    await afterChange();
    for (let renewals = 0; renewals < 20; renewals++) {
      time.tick(lease / 2);
      const next = Date.now() + lease;
      assertEquals([id, renewals, await store.touch(working(), next)], [id, renewals, true]);
      await afterChange();
      until = next;
    }
    time.tick(lease + expireIn - 1); // its process has died
    assertEquals([await store.load(id), await store.pending(Date.now(), 9)], [working(), [id]]);
    assertEquals(await store.save({ id, version: 1, messages }), 2); // another process has ended the run
    await afterChange();
    time.tick(expireIn - 1);
    assertEquals(await store.list(), [id]);
    time.tick(1);
    assertEquals([await store.load(id), await store.list()], [undefined, []]);
  }
}
