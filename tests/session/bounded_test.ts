/**
 * The calls of a server's store: their deadline, and the reports that the store is slow and works again.
 *
 * @module
 */
import { memory } from "@jizai/jizai";
import { durable, type Journal, StoreDeadlineError, type StoreFact } from "@jizai/jizai/session/durable";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advance } from "../support/fake_time.ts";

/** Bounds a journal with this `head()`, and collects the reports and the outcomes of its calls. */
function bounded(head: () => Promise<undefined>, deadline = 5_000) {
  const { journal } = memory();
  const reports: string[] = [];
  const outcomes: unknown[] = [];
  const store = durable({ ...journal, head } as Journal);
  const observe = (fact: StoreFact) => {
    if (fact.type === "store.called") outcomes.push([fact.operation, fact.milliseconds, fact.outcome]);
    else if (fact.type !== "store.retried") reports.push(`${fact.type} ${fact.operation} ${fact.milliseconds}`);
  };
  const messages: string[] = [];
  const report = ({ message }: Error) => void messages.push(message);
  const calls = store.durable?.bound(store, { deadline, observe, report });
  if (!calls) throw new Error("Cannot bound the store");
  return { calls, journal: calls.journal, reports, outcomes, messages };
}

/** Calls `head()`, and returns the text of its error. */
function failure({ journal }: { readonly journal: Journal }): Promise<string> {
  return journal.head("a").then(() => "", (error) => String(error));
}

Deno.test("a call that never ends is reported after a second, and rejects at its deadline", async () => {
  using time = new FakeTime();
  const store = bounded(() => new Promise(() => {}));
  const { reports, outcomes } = store;
  const failed = failure(store);
  await advance(time, 999);
  assertEquals(reports, []);
  await advance(time, 1);
  assertEquals(reports, ["store.slow head 1000"]);
  await advance(time, 3_999);
  assertEquals(outcomes, []);
  await advance(time, 1);
  assertEquals(await failed, "StoreDeadlineError: Cannot head: the store has not answered within 5000 ms");
  assertEquals([reports, outcomes], [["store.slow head 1000"], [["head", 5_000, "deadline"]]]);
});

Deno.test("a store that is frozen for 15 seconds is reported twice, with its operation and its duration", async () => {
  using time = new FakeTime();
  let isFrozen = true;
  const store = bounded(() => isFrozen ? new Promise(() => {}) : Promise.resolve(undefined));
  for (let attempt = 0; attempt < 3; attempt++) {
    const failed = failure(store);
    await advance(time, 5_000);
    await failed;
  }
  isFrozen = false;
  assertEquals(await failure(store), "");
  assertEquals(store.reports, ["store.slow head 1000", "store.recovered head 15000"]);
  assertEquals(store.messages, [
    "The store is slow: `head` has not succeeded for 1000 ms",
    "The store works again after 15000 ms, in which `head` did not succeed",
  ]);
});

Deno.test("a call that is slow and succeeds is reported, and again when it is over", async () => {
  using time = new FakeTime();
  const store = bounded(() => new Promise((resolve) => setTimeout(() => resolve(undefined), 3_000)));
  const failed = failure(store);
  await advance(time, 3_000);
  assertEquals(await failed, "");
  assertEquals(store.reports, ["store.slow head 1000", "store.recovered head 3000"]);
  assertEquals(store.outcomes, [["head", 3_000, "ok"]]);
});

Deno.test("a store that fails is reported once its operation has failed for a second, and single failures are not", async () => {
  using time = new FakeTime();
  let isDown = true;
  const store = bounded(() => isDown ? Promise.reject(new Error("away")) : Promise.resolve(undefined));
  assertEquals(await failure(store), "Error: away");
  await advance(time, 10_000);
  for (const ms of [0, 100, 200, 300, 400]) {
    await advance(time, ms);
    assertEquals([await failure(store), store.reports], ["Error: away", ms < 400 ? [] : ["store.slow head 1000"]]);
  }
  isDown = false;
  await advance(time, 500);
  await failure(store);
  assertEquals(store.reports, ["store.slow head 1000", "store.recovered head 1500"]);
});

Deno.test("a success of another operation, or of a call that began before the failure, ends no report", async () => {
  using time = new FakeTime();
  const answers: PromiseWithResolvers<undefined>[] = [];
  const store = bounded(() => {
    const answer = Promise.withResolvers<undefined>();
    answers.push(answer);
    return answer.promise;
  });
  const early = failure(store);
  await advance(time, 500);
  const late = failure(store);
  await advance(time, 500);
  assertEquals(store.reports, ["store.slow head 1000"]);
  await store.journal.list();
  answers[1]?.resolve(undefined);
  await late;
  assertEquals(store.reports, ["store.slow head 1000"]);
  answers[0]?.resolve(undefined);
  await early;
  assertEquals(store.reports, ["store.slow head 1000", "store.recovered head 1000"]);
});

Deno.test("a result after the deadline is dropped, also a failure, and no timer is left", async () => {
  using time = new FakeTime();
  for (const settle of ["resolve", "reject"] as const) {
    const answer = Promise.withResolvers<undefined>();
    const store = bounded(() => answer.promise, 200);
    const failed = failure(store);
    await advance(time, 200);
    answer[settle](undefined);
    assertEquals(await failed, "StoreDeadlineError: Cannot head: the store has not answered within 200 ms");
    assertEquals(store.outcomes, [["head", 200, "deadline"]]);
  }
});

Deno.test("the watch of a store has no deadline, and an operation that the store lacks stays absent", async () => {
  using time = new FakeTime();
  const store = bounded(() => Promise.resolve(undefined));
  let notified = 0;
  const end = store.journal.watch("a", { notify: () => void notified++, fail() {} });
  await advance(time, 60_000);
  await store.journal.delete("a");
  end();
  assertEquals([notified, store.journal.pack, store.reports], [1, undefined, []]);
});

Deno.test("isFailure() is true for an error that may pass, and false for a defect and for the errors of others", async () => {
  const errors = [new Error("away"), new TypeError("wrong"), new RangeError("large")];
  const outcomes: boolean[] = [];
  for (const error of errors) {
    const { calls } = bounded(() => Promise.reject(error));
    await assertRejects(() => calls.journal.head("a"));
    outcomes.push(calls.isFailure(error));
  }
  const { calls } = bounded(() => Promise.resolve(undefined));
  assertEquals([...outcomes, calls.isFailure(new StoreDeadlineError("", Promise.resolve()))], [
    true,
    false,
    false,
    false,
  ]);
});
