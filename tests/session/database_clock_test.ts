import { memory, type Session } from "@jizai/jizai";
import { byDatabaseClock, durable } from "@jizai/jizai/session/durable";
import { storeLaws } from "@jizai/jizai/testing";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";

const until = 2_000_000_000_000;
const session: Session = { id: "s", version: 0, messages: [], lease: { until } };

Deno.test("byDatabaseClock() keeps the laws of stores, whatever the clock of the database", async () => {
  using time = new FakeTime();
  const pass = (ms: number) => time.tick(ms);
  await storeLaws(
    (options) => {
      const database = memory(options);
      const now = () => Promise.resolve(Date.now() - 7_654_321);
      return [1, 2].map(() => durable(byDatabaseClock(database, now)));
    },
    { pass },
  );
});

Deno.test("byDatabaseClock() stores the end of a lease by the clock of the database", async () => {
  using time = new FakeTime();
  const database = memory();
  const behind = 600_000; // the clock of this process
  const store = durable(byDatabaseClock(database, () => Promise.resolve(Date.now() + behind)));
  assertEquals(await store.save(session), 1);
  assertEquals((await database.load("s"))?.lease, { until: until + behind });
  assertEquals(await store.load("s"), { ...session, version: 1 });
  assertEquals([await store.pending(until - 1, 10), await store.pending(until, 10)], [[], ["s"]]);
  time.tick(1_000);
  assertEquals(await store.touch({ ...session, version: 1 }, until + 1_000), true);
  assertEquals(await database.pending(until + behind + 999, 10), []);
  assertEquals(await database.pending(until + behind + 1_000, 10), ["s"]);
});

Deno.test("byDatabaseClock() keeps a lease that was read before the clock of the process was set", async () => {
  using time = new FakeTime();
  const start = Date.now();
  const database = memory();
  const store = durable(byDatabaseClock(database, () => Promise.resolve(start)));
  await store.save(session);
  time.tick(600_000); // the database does not see this time pass
  assertEquals(await store.touch({ ...session, version: 1 }, until + 5), true);
  assertEquals((await store.load("s"))?.lease, { until: until + 5 });
  assertEquals((await database.load("s"))?.lease, { until: until + 5 - 600_000 });
  assertEquals(await store.touch({ ...session, version: 1 }, until + 9), false);
});

Deno.test("byDatabaseClock() keeps its difference if only the network has changed it, and asks the database once a minute", async () => {
  using time = new FakeTime();
  let asked = 0;
  const database = memory();
  const store = durable(byDatabaseClock(database, () => {
    asked++;
    time.tick(40);
    return Promise.resolve(Date.now() - (asked % 2) * 40);
  }));
  await store.save(session);
  const first = (await database.load("s"))?.lease;
  await store.load("s");
  assertEquals(asked, 1);
  time.tick(60_000);
  await store.save({ ...session, version: 1 });
  assertEquals([asked, (await database.load("s"))?.lease], [2, first]);
});
