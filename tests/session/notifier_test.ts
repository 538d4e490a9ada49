import type { LogPage } from "@jizai/jizai/session/log";
import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { follow, notifier } from "../../src/session/notifier.ts";
import { settled } from "../support/batch.ts";

const empty: LogPage = { first: 1, lines: [], last: 0, ended: false };

Deno.test("follow() reads after a notification, and not before", async () => {
  const additions = notifier();
  const leaving = new AbortController();
  let reads = 0;
  const read = () => Promise.resolve(++reads < 3 ? empty : { ...empty, ended: true });
  const pages = Array.fromAsync(follow(0, leaving.signal, read, () => additions.subscribe("r", leaving.signal)));
  await settled();
  assertEquals(reads, 1);
  additions.notify("other");
  await settled();
  assertEquals(reads, 1);
  additions.notify("r");
  additions.notify("r");
  await settled();
  assertEquals(reads, 2);
  additions.notify("r");
  assertEquals(await pages, []);
  assertEquals(reads, 3);
});

Deno.test("follow() reads again after an addition during a read", async () => {
  const additions = notifier();
  const { signal } = new AbortController();
  let reads = 0;
  const read = () => {
    if (++reads === 1) additions.notify("r");
    return Promise.resolve(reads === 1 ? empty : { ...empty, ended: true });
  };
  assertEquals(await Array.fromAsync(follow(0, signal, read, () => additions.subscribe("r", signal))), []);
  assertEquals(reads, 2);
});

Deno.test("follow() looks for additions often while some arrive, and ever more seldom while none do", async () => {
  using time = new FakeTime();
  const additions = notifier(200, 25);
  const leaving = new AbortController();
  const begins = Date.now();
  const looks: number[] = [];
  let last = 0;
  const read = (after: number) => {
    looks.push(Date.now() - begins);
    const lines = Array.from({ length: last - after }, (_, index) => `${after + index + 1}`);
    return Promise.resolve({ first: after + 1, lines, last, ended: false });
  };
  const pages = Array.fromAsync(follow(0, leaving.signal, read, () => additions.subscribe("r", leaving.signal)));
  const advance = async (ms: number) => {
    for (let left = ms; left > 0; left -= 5) await time.tickAsync(5);
  };
  await advance(1_000);
  assertEquals(looks.splice(0), [0, 50, 150, 350, 550, 750, 950]);
  last = 1;
  await advance(150);
  last = 2;
  await advance(15);
  last = 3;
  await advance(200);
  assertEquals(looks.splice(0), [1_150, 1_175, 1_200, 1_250, 1_350]);
  leaving.abort();
  assertEquals((await pages).flatMap(({ lines }) => lines), ["1", "2", "3"]);
});

Deno.test("follow() closes its subscription if a read fails", async () => {
  let closed = 0;
  const subscription = { next: () => Promise.resolve(true), close: () => void closed++ };
  const read = () => Promise.reject(new Error("no disk"));
  const pages = Array.fromAsync(follow(0, new AbortController().signal, read, () => subscription));
  await assertRejects(() => pages, Error, "no disk");
  assertEquals(closed, 1);
});
