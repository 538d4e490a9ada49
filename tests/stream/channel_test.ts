import { assertEquals } from "@std/assert";
import { channel, type ChannelOptions } from "../../src/stream/channel.ts";
import { settled } from "../support/batch.ts";

/** A channel of texts that packs a chunk as the texts joined by "+". */
function texts(options: Omit<ChannelOptions<string, string, string>, "keep" | "merge" | "pack"> = {}) {
  const { sink, stream } = channel<string, string, string>({
    ...options,
    keep: (item) => item,
    merge: (items, item) => `${items}+${item}`,
    pack: (items, send) => send(items),
  });
  return { sink, stream, reader: () => stream.getReader() };
}

Deno.test("items that were written before the first read leave as one chunk", async () => {
  const { sink, stream } = texts();
  sink.write("a");
  sink.write("b");
  sink.close();
  sink.write("late");
  assertEquals(await Array.fromAsync(stream), ["a+b"]);
});

Deno.test("a single item is sent at once to a waiting reader", async () => {
  const { sink, reader } = texts();
  const from = reader();
  for (const item of ["a", "b", "c"]) {
    const read = from.read();
    await settled();
    sink.write(item);
    assertEquals(await read, { done: false, value: item });
  }
  const last = from.read();
  sink.close();
  assertEquals((await last).done, true);
});

Deno.test("items that were written between two reads leave as one chunk", async () => {
  const { sink, reader } = texts();
  const from = reader();
  const first = from.read();
  await settled();
  for (const item of ["a", "b", "c", "d"]) sink.write(item);
  assertEquals((await first).value, "a");
  await settled();
  sink.write("e");
  assertEquals([(await from.read()).value, (await from.read()).value], ["b", "c+d+e"]);
  sink.write("f");
  sink.write("g");
  sink.close();
  assertEquals([(await from.read()).value, (await from.read()).value, (await from.read()).done], ["f", "g", true]);
});

Deno.test("corked items leave as one chunk, also for a waiting reader", async () => {
  const { sink, reader } = texts();
  const from = reader();
  const first = from.read();
  await settled();
  sink.cork();
  sink.write("a");
  sink.write("b");
  sink.uncork();
  assertEquals((await first).value, "a+b");
  const second = from.read();
  sink.cork();
  sink.uncork();
  sink.write("c");
  assertEquals((await second).value, "c");
  sink.cork();
  sink.write("d");
  sink.close();
  sink.uncork();
  assertEquals([(await from.read()).value, (await from.read()).done], ["d", true]);
});

Deno.test("chunks may be as many as the items", async () => {
  const { sink, stream } = channel<number, number[], number>({
    keep: (item) => [item],
    merge: (items, added) => [...items, ...added],
    pack: (items, send) => items.forEach(send),
  });
  sink.write(1);
  sink.write(2);
  const reader = stream.getReader();
  assertEquals((await reader.read()).value, 1);
  sink.write(3);
  sink.close();
  assertEquals([(await reader.read()).value, (await reader.read()).value, (await reader.read()).done], [2, 3, true]);
});

Deno.test("a writer is asked to wait at the high-water mark, after the first read", async () => {
  const { sink, reader } = texts({ highWater: 4, size: (text) => text.length });
  sink.write("abcdef");
  assertEquals(sink.full, undefined);
  const from = reader();
  assertEquals((await from.read()).value, "abcdef");
  sink.write("a");
  sink.write("bcd");
  assertEquals(sink.full, undefined);
  sink.write("e");
  const { full } = sink;
  assertEquals([full instanceof Promise, sink.full === full], [true, true]);
  let room = false;
  full?.then(() => room = true);
  assertEquals([(await from.read()).value, room], ["a", false]);
  assertEquals((await from.read()).value, "bcd+e");
  await full;
  assertEquals([room, sink.full], [true, undefined]);
  await from.cancel();
});

Deno.test("a waiting writer continues when the reader cancels, and onCancel is called", async () => {
  const reasons: unknown[] = [];
  const { sink, reader } = texts({ highWater: 1, onCancel: (reason) => reasons.push(reason) });
  const from = reader();
  const first = from.read();
  await settled();
  for (const item of ["a", "b", "c"]) sink.write(item);
  await first;
  const { full } = sink;
  assertEquals(full instanceof Promise, true);
  await from.cancel("gone");
  await full;
  sink.write("d");
  sink.cork();
  sink.write("e");
  sink.uncork();
  sink.close();
  sink.close();
  assertEquals([reasons, sink.full], [["gone"], undefined]);
});

Deno.test("onCancel is not called after the end", async () => {
  const reasons: unknown[] = [];
  const { sink, stream } = texts({ onCancel: (reason) => reasons.push(reason) });
  sink.write("a");
  sink.close();
  assertEquals(await Array.fromAsync(stream), ["a"]);
  await stream.cancel("late");
  assertEquals(reasons, []);
});

Deno.test("a channel that was closed before the first read ends at once", async () => {
  const { sink, stream } = texts();
  sink.close();
  assertEquals(await Array.fromAsync(stream), []);
});

Deno.test("every item is read once and in order, in random schedules", async () => {
  let state = 3;
  const roll = (end: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * end);
  };
  for (let round = 0; round < 60; round++) {
    const { sink, stream } = channel<number, number[], number[]>({
      keep: (item) => [item],
      merge: (items, added) => [...items, ...added],
      pack: (items, send) => send(items),
      highWater: 3,
    });
    const reader = stream.getReader();
    const read: number[] = [];
    const reading: Promise<void>[] = [];
    const take = async () => {
      const { value = [] } = await reader.read();
      read.push(...value);
    };
    let written = 0;
    for (let step = 0; step < 30; step++) {
      const what = roll(6);
      if (what < 2) sink.write(written++);
      else if (what === 2) {
        sink.cork();
        for (let more = roll(4); more > 0; more--) sink.write(written++);
        sink.uncork();
      } else if (what === 3) reading.push(take());
      else if (what === 4) await Promise.resolve();
      else await settled();
    }
    sink.close();
    for (let next = await reader.read(); !next.done; next = await reader.read()) read.push(...next.value);
    await Promise.all(reading);
    assertEquals(read, Array.from({ length: written }, (_, index) => index));
  }
});
