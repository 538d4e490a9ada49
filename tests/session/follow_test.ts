import { assertEquals, assertRejects } from "@std/assert";
import { bell, follow } from "../../src/session/follow.ts";
import type { LogPage } from "@jizai/jizai/session/log";
import { settled } from "../support/batch.ts";

const empty: LogPage = { first: 1, lines: [], last: 0, ended: false };

Deno.test("follow() reads when it is told to, and not before", async () => {
  const added = bell();
  const leaving = new AbortController();
  let reads = 0;
  const read = () => Promise.resolve(++reads < 3 ? empty : { ...empty, ended: true });
  const pages = Array.fromAsync(follow(0, leaving.signal, read, () => added.listen("r", leaving.signal)));
  await settled();
  assertEquals(reads, 1);
  added.ring("other");
  await settled();
  assertEquals(reads, 1);
  added.ring("r");
  added.ring("r");
  await settled();
  assertEquals(reads, 2);
  added.ring("r");
  assertEquals(await pages, []);
  assertEquals(reads, 3);
});

Deno.test("follow() reads again where something was added while it read", async () => {
  const added = bell();
  const { signal } = new AbortController();
  let reads = 0;
  const read = () => {
    if (++reads === 1) added.ring("r");
    return Promise.resolve(reads === 1 ? empty : { ...empty, ended: true });
  };
  assertEquals(await Array.fromAsync(follow(0, signal, read, () => added.listen("r", signal))), []);
  assertEquals(reads, 2);
});

Deno.test("follow() leaves where reading fails", async () => {
  let left = 0;
  const listening = { next: () => Promise.resolve(true), leave: () => void left++ };
  const read = () => Promise.reject(new Error("no disk"));
  const pages = Array.fromAsync(follow(0, new AbortController().signal, read, () => listening));
  await assertRejects(() => pages, Error, "no disk");
  assertEquals(left, 1);
});
