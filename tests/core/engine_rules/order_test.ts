import { skipped, text } from "@jizai/jizai";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { at, batch, call, gauge, runBatch, settled, three, watch, weather } from "../../support/batch.ts";

/** A lock that one caller holds; `release` admits the next one. */
function lock() {
  let last = Promise.resolve();
  return async (signal: AbortSignal): Promise<() => void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = last;
    last = promise;
    const gone = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => gone.reject(signal.reason), { once: true });
    await Promise.race([before, gone.promise]);
    return resolve;
  };
}

Deno.test("Engine: a lock taken at tool blocks the batch until the run is stopped, and no call runs", async () => {
  const log: string[] = [];
  const take = lock();
  const running = batch(three, {
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [watch(log), {
      name: "lock",
      async tool(ctx, next) {
        const release = await take(ctx.signal);
        try {
          return await next();
        } finally {
          release();
        }
      },
    }],
  }).run();
  await settled();
  assertEquals(log, ["in a", "in b"]);
  running.stop();
  const { result } = await running.outcome;
  assertEquals(result.status, "aborted");
  assertEquals(log, ["in a", "in b", "finally b", "out a aborted", "finally a"]);
});

Deno.test("Engine: a lock taken at execute is held while the work runs, in the order of the calls", async () => {
  const log: string[] = [];
  const inside = gauge();
  const take = lock();
  const { lines } = await runBatch(three, {
    tools: [weather(({ city }, { callIndex }) =>
      inside.during(async () => {
        log.push(`${callIndex} ${city}`);
        await settled();
        return city;
      })
    )],
    use: [{
      name: "lock",
      async execute(ctx, next) {
        const release = await take(ctx.signal);
        try {
          return await next();
        } finally {
          release();
        }
      },
    }],
  });
  assertEquals(lines.slice(1), ["ok a", "ok b", "ok c", "assistant Done."]);
  assertEquals([log, inside.peak], [["0 a", "1 b", "2 c"], 1]);
});

Deno.test("Engine: two tools of 100 ms take 100 ms, and their hooks never overlap", async () => {
  using time = new FakeTime();
  const tools = gauge();
  const hooks = gauge();
  const slow = weather(({ city }) =>
    tools.during(() => new Promise((resolve) => setTimeout(() => resolve(city), 100)))
  );
  const running = batch([call("a"), call("b")], {
    tools: [slow],
    use: [{
      name: "slow",
      async tool(_, next) {
        await hooks.during(() => Promise.resolve().then(() => {}));
        const result = await next();
        await hooks.during(() => Promise.resolve().then(() => {}));
        return result;
      },
    }],
  }).run();
  const { start } = time;
  await time.tickAsync(100);
  const { lines } = await running.outcome;
  assertEquals(lines.slice(1), ["ok a", "ok b", "assistant Done."]);
  assertEquals([tools.peak, hooks.peak, time.now - start], [2, 1, 100]);
});

Deno.test("Engine: code after next() at tool waits for the slowest tool", async () => {
  const log: string[] = [];
  const slowest = Promise.withResolvers<string>();
  const reported = Promise.withResolvers<void>();
  const running = batch([call("a"), call("b")], {
    tools: [weather(({ city }, { progress }) => {
      progress("early");
      reported.resolve();
      return city === "b" ? slowest.promise : "quick";
    })],
    use: [watch(log)],
  }).run();
  await reported.promise;
  await settled();
  assertEquals(log, ["in a", "in b"]);
  slowest.resolve("slow");
  await running.outcome;
  assertEquals(log, ["in a", "in b", "out a ok", "finally a", "out b ok", "finally b"]);
});

Deno.test("Engine: a skipped call stops the inner hooks for itself only", async () => {
  const log: string[] = [];
  await runBatch(three, { use: [at("b", { tool: () => Promise.resolve(skipped("not now")) }), watch(log)] });
  assertEquals(log, ["in a", "in c", "out a ok", "finally a", "out c ok", "finally c"]);
});

Deno.test("Engine: a run ended at the third call runs neither of the first two", async () => {
  const log: string[] = [];
  await runBatch(three, {
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [at("c", {
      tool(ctx) {
        throw ctx.run.end("enough", { as: "cancelled" });
      },
    })],
  });
  assertEquals(log, []);
});

Deno.test("Engine: a run paused at the third call runs nothing, and all calls enter again in a new batch", async () => {
  const log: string[] = [];
  const batches = new Set<string>();
  const started = batch(three, {
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [{
      name: "look",
      async tool(ctx, next) {
        batches.add(ctx.batchId);
        log.push(`in ${ctx.call.id}`);
        return await next();
      },
    }, {
      name: "gate",
      async tool(ctx, next) {
        if (ctx.call.id === "c" && !ctx.resumed) throw ctx.run.pause("Go on?");
        return await next();
      },
    }],
  });
  const { result } = await started.run().outcome;
  assertEquals(log.splice(0), ["in a", "in b", "in c"]);
  await started.resume(result.session).outcome;
  assertEquals(log, ["in a", "in b", "in c", "run a", "run b", "run c"]);
  assertEquals(batches.size, 2);
});

Deno.test("Engine: a call that was answered consumes its index", async () => {
  const places: string[] = [];
  await runBatch(three, {
    tools: [weather((_, { callId, callIndex }) => places.push(`${callId} ${callIndex}`))],
    use: [at("b", { tool: () => Promise.resolve(text("answered")) })],
  });
  assertEquals(places, ["a 0", "c 2"]);
});
