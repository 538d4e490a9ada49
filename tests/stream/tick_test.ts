import { assertEquals } from "@std/assert";

Deno.test("nextTick() uses the timers of the platform, which a test fakes later, and reads them with the first call", async () => {
  const platform = Object.getOwnPropertyDescriptor(globalThis, "setTimeout") ?? {};
  const { setTimeout: real } = globalThis;
  let reads = 0;
  const get = () => {
    reads++;
    return real;
  };
  try {
    Object.defineProperty(globalThis, "setTimeout", { configurable: true, get });
    const { nextTick } = await import("../../src/stream/tick.ts?fresh"); // a copy that has read no timer yet
    assertEquals(reads, 0);
    Object.defineProperty(globalThis, "setTimeout", { configurable: true, value: () => {} });
    await new Promise<void>((resolve) => nextTick(resolve));
    assertEquals(reads, 1);
    let called = false;
    const cancel = nextTick(() => called = true);
    cancel();
    await new Promise<void>((resolve) => nextTick(resolve));
    assertEquals(called, false);
  } finally {
    Object.defineProperty(globalThis, "setTimeout", platform);
  }
});
