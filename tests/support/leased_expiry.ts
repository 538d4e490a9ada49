/**
 * A session whose run works longer than `expireIn`, as the engine saves it: with a lease that is renewed.
 *
 * @module
 */
import { type Session, type Store, user } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import type { FakeTime } from "@std/testing/time";
import { journalKey } from "../../src/core/journal.ts";

/** The `expireIn` of the store. */
export const expireIn = 60_000;

/** Checks that a store keeps a session until `expireIn` after the end of its lease, however often it is renewed, and then deletes it. */
export async function checkLeasedExpiry(
  store: Pick<Store, "save" | "load" | "list" | "journal">,
  time: FakeTime,
  afterChange: () => void | Promise<void> = () => {},
): Promise<void> {
  const { journal } = store;
  for (const lease of [20_000, 600_000]) {
    const id = `lease ${lease}`;
    const key = journalKey(undefined, id);
    let [until, version] = [Date.now() + lease, 0];
    const messages = [user("Hi ".repeat(30_000))];
    const working = (): Session => ({ id, version, messages, lease: { until } });
    assertEquals(await store.save(working()), ++version);
    await afterChange();
    for (let renewals = 0; renewals < 20; renewals++) {
      time.tick(lease / 2);
      const { mark } = await journal.head(key) ?? {};
      const renewal = { from: mark, to: { holder: "renewal", n: ++version }, due: lease };
      assertEquals([id, renewals, (await journal.append(key, renewal))?.stored], [id, renewals, true]);
      await afterChange();
      until = Date.now() + lease;
    }
    time.tick(lease + expireIn - 1); // its process has died
    assertEquals([await store.load(id), await journal.pending(9)], [working(), [key]]);
    assertEquals(await store.save({ id, version, messages }), ++version); // another process has ended the run
    await afterChange();
    time.tick(expireIn - 1);
    assertEquals(await store.list(), [id]);
    time.tick(1);
    assertEquals([await store.load(id), await store.list()], [undefined, []]);
  }
}
