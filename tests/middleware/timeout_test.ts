import { agent, type AnyTool, type Middleware, only, tool } from "@jizai/jizai";
import { timeout } from "@jizai/jizai/middleware/timeout";
import { retry } from "@jizai/jizai/middleware/retry";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals, assertThrows } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advanceUntilSettled } from "../support/fake_time.ts";
import { lines } from "../support/transcript_lines.ts";

/** Resolves after `ms` milliseconds. When its signal aborts, it rejects with `stopped()`. */
function sleep(ms: number, signal?: AbortSignal, stopped = () => signal?.reason): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(stopped());
    }, { once: true });
  });
}

/** A tool that takes as long as its input says. */
const work = tool({
  name: "work",
  description: "Works",
  input: z.object({ ms: z.number() }),
  idempotent: true,
  async execute({ ms }, { signal }) {
    await sleep(ms, signal);
    return `Worked ${ms} ms.`;
  },
});

/** A tool of this name that takes no input. */
function plain(name: string, execute: (signal: AbortSignal) => unknown) {
  return tool({ name, description: "", input: z.object({}), execute: (_, { signal }) => execute(signal) });
}

/** Runs one batch of calls of `work`, or of other tools. Returns the results and the warnings. */
async function worked(
  use: readonly Middleware[],
  calls: readonly (readonly [string, unknown])[],
  tools: readonly AnyTool[] = [work],
) {
  using time = new FakeTime();
  const warnings: string[] = [];
  const observe = (event: { readonly type: string; readonly code?: string }) => {
    if (event.code !== undefined) warnings.push(event.code);
  };
  const run = agent({ model: scripted({ calls }, "Done."), tools, use, observe }).run("Go");
  const { status, messages } = await advanceUntilSettled(time, run.result);
  return { status, results: lines(messages).slice(2, -1), warnings, took: time.now - time.start };
}

Deno.test("timeout() aborts a slow tool, and not the others", async () => {
  const { results, warnings, took } = await worked([timeout(100)], [["work", { ms: 99 }], ["work", { ms: 101 }]]);
  assertEquals(results, ["ok Worked 99 ms.", "timeout work did not finish in time."]);
  assertEquals([warnings, took], [[], 100]);
});

Deno.test("timeout() reports a timeout, whatever the aborted tool throws", async () => {
  const wrapping = plain("wrapping", (signal) => sleep(200, signal, () => new Error("fetch failed")));
  const { results } = await worked([timeout(100)], [["wrapping", {}]], [wrapping]);
  assertEquals(results, ["timeout wrapping did not finish in time."]);
});

Deno.test("timeout() keeps a tool's own failure", async () => {
  const broken = plain("broken", () => Promise.reject(new Error("broken")));
  assertEquals((await worked([timeout(100)], [["broken", {}]], [broken])).results, ["error broken failed."]);
});

Deno.test("timeout() abandons a tool that ignores its signal", async () => {
  const ignoresSignal = plain("deaf", () => sleep(100_000));
  const { results, warnings, took } = await worked([timeout(100)], [["deaf", {}]], [ignoresSignal]);
  assertEquals(results, ["timeout deaf did not finish in time."]);
  assertEquals([warnings, took], [["tool.abandoned"], 1_100]);
});

Deno.test("timeout() counts the wait for a slot", async () => {
  using time = new FakeTime();
  const model = scripted({ calls: [["work", { ms: 80 }], ["work", { ms: 80 }]] }, "Done.");
  const run = agent({ model, tools: [work], use: [timeout(100)], limits: { parallel: 1 } }).run("Go");
  const { messages } = await advanceUntilSettled(time, run.result);
  assertEquals(lines(messages).slice(2, -1), ["ok Worked 80 ms.", "timeout work did not finish in time."]);
});

Deno.test("only() with timeout() limits some tools", async () => {
  const rest = plain("rest", (signal) => sleep(200, signal));
  const use = [only("work", timeout(100))];
  const { results } = await worked(use, [["work", { ms: 200 }], ["rest", {}]], [work, rest]);
  assertEquals(results, ["timeout work did not finish in time.", "ok"]);
});

Deno.test("timeout() limits each attempt after retry, and all attempts before retry", async () => {
  const retrying = retry({ attempts: 3, delay: 0 });
  const each = await worked([retrying, timeout(100)], [["work", { ms: 200 }]]);
  const all = await worked([timeout(100), retrying], [["work", { ms: 200 }]]);
  assertEquals([each.took, all.took], [300, 100]);
  assertEquals([each.results, all.results], [
    ["timeout work did not finish in time."],
    ["timeout work did not finish in time."],
  ]);
});

Deno.test("several timeout() apply the shortest time", async () => {
  const { took } = await worked([timeout(300), timeout(100), timeout(200)], [["work", { ms: 400 }]]);
  assertEquals(took, 100);
});

Deno.test("timeout({ model }) limits a request to the model", async () => {
  const answer = async (limit: Parameters<typeof timeout>[0]) => {
    using time = new FakeTime();
    const model = scripted({ text: "Hello!", before: (_, signal) => sleep(200, signal) });
    const { status, error } = await advanceUntilSettled(time, agent({ model, use: [timeout(limit)] }).run("Hi").result);
    return [status, error === undefined ? "" : String(error)];
  };
  assertEquals(await answer({ model: 100 }), ["failed", "TimeoutError: Not done after 100 ms"]);
  assertEquals(await answer({ model: 300 }), ["done", ""]);
  assertEquals(await answer({ execute: 100 }), ["done", ""]);
  assertEquals(await answer(100), ["done", ""]);
});

Deno.test("timeout() limits the whole response, and keeps the emitted text", async () => {
  using time = new FakeTime();
  const model = scripted({
    reads: (function* () {
      yield [{ type: "text" as const, text: "Hel" }];
      yield sleep(200).then(() => [{ type: "text" as const, text: "lo!" }]);
    })(),
  });
  const { status, text } = await advanceUntilSettled(
    time,
    agent({ model, use: [timeout({ model: 100 })] }).run("Hi").result,
  );
  assertEquals([status, text], ["failed", "Hel"]);
});

Deno.test("timeout() does not hide a stop of the run", async () => {
  const reached = Promise.withResolvers<void>();
  const waiting = plain("waiting", (signal) => {
    reached.resolve();
    return sleep(100_000, signal);
  });
  const model = scripted({ calls: [["waiting", {}]] });
  const run = agent({ model, tools: [waiting], use: [timeout({ execute: 100_000, model: 100_000 })] }).run("Go");
  await reached.promise;
  run.stop("enough");
  const { status, messages } = await run.result;
  assertEquals([status, lines(messages)], ["aborted", [
    "user Go",
    "call waiting",
    "aborted Stopped before it was done.",
  ]]);
});

Deno.test("timeout() passes on a late interrupt of an inner hook", async () => {
  const late: Middleware = {
    name: "late",
    async execute({ run }) {
      await sleep(200);
      throw run.end("enough");
    },
  };
  const { status } = await worked([timeout(100), late], [["work", { ms: 1 }]]);
  assertEquals(status, "cancelled");
});

Deno.test("timeout() throws for an invalid time", () => {
  for (const ms of [0, -1, NaN, Infinity, 2 ** 31]) {
    const message =
      `Cannot create timeout(): the time is ${ms}; expected a positive number up to 2147483647 milliseconds`;
    assertThrows(() => timeout(ms), RangeError, message);
    assertThrows(() => timeout({ model: ms }), RangeError, message);
  }
});
