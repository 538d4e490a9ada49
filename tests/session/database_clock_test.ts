/**
 * The clock of a database, by which journals count their times: the clocks of processes may be wrong.
 */
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { clockOffset } from "../../src/session/database_clock.ts";

Deno.test("clockOffset() returns by how much the database is ahead, or behind", async () => {
  using time = new FakeTime();
  for (const difference of [600_000, -7_654_321, 0]) {
    const clock = clockOffset(() => Promise.resolve(Date.now() + difference));
    assertEquals(await clock.ahead(), difference);
    time.tick(1_000);
    assertEquals(await clock.ahead(), difference);
  }
});

Deno.test("clockOffset() compares the clocks anew once that of the process was set", async () => {
  using time = new FakeTime();
  const start = Date.now();
  const clock = clockOffset(() => Promise.resolve(start)); // the database does not see time pass
  assertEquals(await clock.ahead(), 0);
  time.tick(600_000);
  assertEquals(await clock.ahead(), -600_000);
});

Deno.test("clockOffset() keeps its difference if only the network has changed it, and asks the database once a minute", async () => {
  using time = new FakeTime();
  let asked = 0;
  const clock = clockOffset(() => {
    asked++;
    time.tick(40);
    return Promise.resolve(Date.now() - (asked % 2) * 40);
  });
  const first = await clock.ahead();
  await clock.ahead();
  assertEquals(asked, 1);
  time.tick(60_000);
  assertEquals([await clock.ahead(), asked], [first, 2]);
});
