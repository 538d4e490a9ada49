/**
 * The laws of stores about leases.
 *
 * @module
 */
import { expireIn, type ExpiryLaws, type Laws } from "./run_laws.ts";
import { runningSession, sessionWith, type TestedStore } from "./sample_sessions.ts";

/** The laws about finding the sessions whose process may have died, and about giving them to one process. */
export const leaseLaws: Laws<TestedStore> = {
  async "finds the sessions whose lease has ended"(store, expect) {
    const ends = [["c", 3_000], ["a'b", 1_000], ["😀", 2_000], ["late", 2 ** 45]] as const;
    for (const [id, until] of ends) await store.save({ ...sessionWith(id, "Hi"), lease: { until } });
    await store.save(sessionWith("free", "Hi"));
    expect("pending() before all of them", await store.pending(999, 10), []);
    expect("pending() at the end of one", await store.pending(1_000, 10), ["a'b"]);
    expect("pending()", await store.pending(5_000, 10), ["a'b", "😀", "c"]);
    expect("pending() of at most two", await store.pending(5_000, 2), ["a'b", "😀"]);
    await store.save({ ...sessionWith("a'b", "Hi", 1), lease: { until: 4_000, closing: "stop" } });
    await store.save(sessionWith("😀", "Hi", 1));
    expect("pending() after saves", await store.pending(5_000, 10), ["c", "a'b"]);
    const { lease } = await store.load("a'b") ?? {};
    expect("the lease that load() gave", lease, { until: 4_000, closing: "stop" });
    await store.delete("c");
    expect("pending() after delete()", await store.pending(5_000, 10), ["a'b"]);
    expect("pending() of all times", await store.pending(Number.MAX_SAFE_INTEGER, 10), ["a'b", "late"]);
  },

  async "moves a lease only for a caller that knows the session"(store, expect) {
    const leased = (version: number, until: number) => ({ ...sessionWith("s", "Hi", version), lease: { until } });
    await store.save(leased(0, 1_000));
    await store.save(sessionWith("free", "Hi"));
    expect("touch() with another lease", await store.touch(leased(1, 999), 5_000), false);
    expect("touch() without the lease", await store.touch(sessionWith("s", "Hi", 1), 5_000), false);
    expect("touch() with another version", await store.touch(leased(2, 1_000), 5_000), false);
    expect("touch() of no session", await store.touch({ ...leased(1, 1_000), id: "none" }, 5_000), false);
    expect("touch() of a session without a lease", await store.touch(sessionWith("free", "Hi", 1), 5_000), false);
    expect("pending() after that", await store.pending(1_000, 10), ["s"]);
    expect("touch()", await store.touch(leased(1, 1_000), 5_000), true);
    expect("load()", await store.load("s"), leased(1, 5_000));
    expect("pending()", [await store.pending(4_999, 10), await store.pending(5_000, 10)], [[], ["s"]]);
    expect("touch() again with the old lease", await store.touch(leased(1, 1_000), 9_000), false);
    expect("touch() with the new lease", await store.touch(leased(1, 5_000), 7_000), true);
    expect("save() of that version", await store.save(leased(1, 6_000)), 2);
    expect("load() after save()", await store.load("s"), leased(2, 6_000));
    expect("pending() after save()", [await store.pending(6_999, 10), await store.pending(5_999, 10)], [["s"], []]);
  },

  async "lets one of several processes move a lease"(store, expect) {
    for (const until of [1_000, 2_000, 3_000]) {
      const before = (await store.load("s"))?.version ?? 0;
      const session = { ...sessionWith("s", "x".repeat(100_000), before), lease: { until } };
      const version = await store.save(session) ?? 0;
      const found = { ...session, version };
      const moved = await Promise.all([10, 20, 30, 40].map((more) => store.touch(found, until + more)));
      expect("what touch() gave, sorted", moved.toSorted(), [false, false, false, true]);
      const end = until + 10 * (moved.indexOf(true) + 1);
      expect("the session after that", await store.load("s"), { ...found, lease: { until: end } });
      const both = await Promise.all([
        store.touch({ ...found, lease: { until: end } }, end + 1),
        store.save({ ...found, lease: { until: end + 2 } }),
      ]);
      const last = both[1] === undefined ? end + 1 : end + 2;
      expect("the lease after touch() and save() at once", (await store.load("s"))?.lease, { until: last });
      expect("pending() after that", await store.pending(last, 10), ["s"]);
      expect("pending() before that", await store.pending(last - 1, 10), []);
    }
  },
};

/** The laws about leases of sessions that expire. */
export const leaseExpiryLaws: ExpiryLaws<TestedStore> = (pass) => ({
  async "deletes the lease of what has expired"(store, expect) {
    const lease = { until: 1_000 };
    await store.save({ ...sessionWith("old", "Hi"), lease });
    await store.save({ ...sessionWith("used", "Hi"), lease: { until: 2_000 } });
    await pass(expireIn - 100);
    expect("pending() before it expires", await store.pending(5_000, 10), ["old", "used"]);
    const used = { ...sessionWith("used", "Hi", 1), lease: { until: 2_000 } };
    expect("touch() before it expires", await store.touch(used, 3_000), true);
    await pass(200);
    expect("pending()", await store.pending(5_000, 10), ["used"]);
    const old = { ...sessionWith("old", "Hi", 1), lease };
    expect("touch() of what has expired", await store.touch(old, 9_000), false);
    expect("load() of what was touched", (await store.load("used"))?.lease, { until: 3_000 });
  },

  async "keeps a session until its lease has ended"(store, expect) {
    const end = Date.now() + 86_400_000;
    const leased = (version: number, until: number) => ({ ...runningSession("s", version), lease: { until } });
    await store.save(leased(0, end));
    await pass(expireIn + 100);
    expect("load() during the lease", await store.load("s"), leased(1, end));
    expect("touch() during the lease", await store.touch(leased(1, end), end + 1), true);
    await pass(expireIn + 100);
    expect("load() after touch()", await store.load("s"), leased(1, end + 1));
    expect("list() after touch()", await store.list(), ["s"]);
    expect("pending() after touch()", await store.pending(end + 1, 10), ["s"]);
    expect("save() without a lease", await store.save(sessionWith("s", "Hi", 1)), 2);
    await pass(expireIn - 100);
    expect("load() before it expires", await store.load("s"), sessionWith("s", "Hi", 2));
    await pass(200);
    expect("load() after it has expired", await store.load("s"), undefined);
    expect("list() after it has expired", await store.list(), []);
  },
});
