import { anySignal } from "@jizai/jizai/kit";
import { assertEquals } from "@std/assert";

/** Runs a test as on a runtime without `AbortSignal.any()`. */
function withoutAny(test: () => void): void {
  const { any } = AbortSignal;
  Reflect.deleteProperty(AbortSignal, "any");
  try {
    test();
  } finally {
    AbortSignal.any = any;
  }
}

/** Asserts what every signal of anySignal() does. */
function assertFollows(): void {
  for (const index of [0, 1]) {
    const sources = [new AbortController(), new AbortController()];
    const signal = anySignal(sources.map((source) => source.signal));
    let aborts = 0;
    signal.addEventListener("abort", () => aborts++);
    assertEquals(signal.aborted, false);
    sources[index]?.abort("first");
    sources[1 - index]?.abort("second");
    assertEquals([signal.aborted, signal.reason, aborts], [true, "first", 1]);
  }
  const aborted = anySignal([new AbortController().signal, AbortSignal.abort("before")]);
  assertEquals([aborted.aborted, aborted.reason], [true, "before"]);
  assertEquals(anySignal([]).aborted, false);
}

Deno.test("anySignal() aborts with the first of its signals, and with its reason", assertFollows);

Deno.test("anySignal() aborts with the first of its signals on a runtime without AbortSignal.any()", () => {
  withoutAny(assertFollows);
});

Deno.test("anySignal() leaves no listener on its signals after the abort, without AbortSignal.any()", () => {
  withoutAny(() => {
    const source = new AbortController();
    const late = new AbortController();
    let reads = 0;
    const signal = anySignal([source.signal, late.signal]);
    late.abort("late");
    Object.defineProperty(source.signal, "reason", { get: () => reads++ });
    source.abort("source");
    assertEquals([signal.reason, reads], ["late", 0]);
  });
});
