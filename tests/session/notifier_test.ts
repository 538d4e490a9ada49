import { assertEquals, assertRejects } from "@std/assert";
import { follow, notifier } from "../../src/session/notifier.ts";
import type { LogPage } from "@jizai/jizai/session/log";
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

Deno.test("follow() closes its subscription if a read fails", async () => {
  let closed = 0;
  const subscription = { next: () => Promise.resolve(true), close: () => void closed++ };
  const read = () => Promise.reject(new Error("no disk"));
  const pages = Array.fromAsync(follow(0, new AbortController().signal, read, () => subscription));
  await assertRejects(() => pages, Error, "no disk");
  assertEquals(closed, 1);
});
