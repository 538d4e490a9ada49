import { agent, deny, type Middleware, only, tool } from "@jizai/jizai";
import { serial } from "@jizai/jizai/middleware/serial";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { spy } from "@std/testing/mock";
import * as z from "zod";
import { settled } from "../support/batch.ts";
import { lines } from "../support/transcript_lines.ts";

/** A tool that notes when it begins and ends, and how many of its kind run at the same time. */
function workshop(execute: (n: number, signal: AbortSignal) => Promise<void> = settled) {
  const log: string[] = [];
  const gauge = { running: 0, peak: 0 };
  const make = (name: string) =>
    tool({
      name,
      description: "Works",
      input: z.object({ n: z.number() }),
      idempotent: true,
      async execute({ n }, { signal }) {
        gauge.running++;
        gauge.peak = Math.max(gauge.peak, gauge.running);
        log.push(`${name}${n} begins`);
        try {
          await execute(n, signal);
          return `${name}${n}`;
        } finally {
          log.push(`${name}${n} ends`);
          gauge.running--;
        }
      },
    });
  return { log, gauge, tools: [make("a"), make("b")] };
}

/** A script that makes these calls, such as "a1", in one batch. */
function calling(...calls: readonly string[]) {
  return scripted({ calls: calls.map((call) => [call.slice(0, 1), { n: Number(call.slice(1)) }] as const) }, "Done.");
}

Deno.test("serial() executes one call at a time, in the order of callIndex", async () => {
  const { log, gauge, tools } = workshop((n) => settled().then(() => n % 2 === 0 ? settled() : undefined));
  const all: Middleware = {
    name: "all",
    execute(ctx, next) {
      log.push(`call ${ctx.callIndex}`);
      return next();
    },
  };
  const { messages } = await agent({ model: calling("a4", "a3", "a2", "a1"), tools, use: [all, serial()] })
    .run("Go").result;
  assertEquals(gauge.peak, 1);
  assertEquals(log, [
    "call 0",
    "a4 begins",
    "call 1",
    "call 2",
    "call 3",
    "a4 ends",
    "a3 begins",
    "a3 ends",
    "a2 begins",
    "a2 ends",
    "a1 begins",
    "a1 ends",
  ]);
  assertEquals(lines(messages).slice(2, 6), ["ok a4", "ok a3", "ok a2", "ok a1"]);
});

Deno.test("serial() executes calls of different tools in parallel", async () => {
  const { log, gauge, tools } = workshop();
  await agent({ model: calling("a1", "b1", "a2", "b2"), tools, use: [serial()] }).run("Go").result;
  assertEquals(gauge.peak, 2);
  assertEquals(log, [
    "a1 begins",
    "b1 begins",
    "a1 ends",
    "a2 begins",
    "b1 ends",
    "b2 begins",
    "a2 ends",
    "b2 ends",
  ]);
});

Deno.test("serial() accepts a key or a function", async () => {
  const one = workshop();
  await agent({ model: calling("a1", "b1"), tools: one.tools, use: [serial("disk")] }).run("Go").result;
  assertEquals(one.log, ["a1 begins", "a1 ends", "b1 begins", "b1 ends"]);

  const some = workshop();
  const odd = serial(({ input }) => z.object({ n: z.number() }).parse(input).n % 2 === 1 ? "odd" : undefined);
  await agent({ model: calling("a1", "a3", "a2", "a4"), tools: some.tools, use: [odd] }).run("Go").result;
  assertEquals(some.log, [
    "a1 begins",
    "a2 begins",
    "a4 begins",
    "a1 ends",
    "a3 begins",
    "a2 ends",
    "a4 ends",
    "a3 ends",
  ]);
});

Deno.test("serial() waits without a slot of limits.parallel", async () => {
  const b = Promise.withResolvers<void>();
  const { log, tools } = workshop(async (n) => n === 9 ? b.resolve() : await b.promise);
  const assistant = agent({
    model: calling("a1", "a2", "a3", "b9"),
    tools,
    use: [only("a", serial())],
    limits: { parallel: 2 },
  });
  assertEquals((await assistant.run("Go").result).status, "done");
  assertEquals(log.slice(0, 3), ["a1 begins", "b9 begins", "b9 ends"]);

  const alone = workshop();
  await agent({ model: calling("a1", "a2"), tools: alone.tools, use: [serial()], limits: { parallel: 1 } })
    .run("Go").result;
  assertEquals(alone.log, ["a1 begins", "a1 ends", "a2 begins", "a2 ends"]);
});

Deno.test("serial() does not wait for a denied, invalid or failed call", async () => {
  const { log, tools } = workshop((n) => n === 3 ? Promise.reject(new Error("broken")) : settled());
  const guard: Middleware = {
    name: "guard",
    approval: (ctx, next) => ctx.call.id === "call_1" ? Promise.resolve(deny("No.")) : next(),
  };
  const model = scripted({ calls: [["a", { n: 1 }], ["a", { n: "two" }], ["a", { n: 3 }], ["a", { n: 4 }]] }, "Done.");
  const { messages } = await agent({ model, tools, use: [guard, serial()] }).run("Go").result;
  assertEquals(log, ["a3 begins", "a3 ends", "a4 begins", "a4 ends"]);
  assertEquals(lines(messages).slice(2, 6).map((line) => line.split(":")[0]), [
    "denied No.",
    "error The input of a is not valid",
    "error a failed.",
    "ok a4",
  ]);
});

Deno.test("serial() also orders calls of other runs", async () => {
  const { log, gauge, tools } = workshop();
  const use = [serial()];
  const runs = ["a1", "a2", "a3"].map((call) => agent({ model: calling(call), tools, use }).run("Go").result);
  await Promise.all(runs);
  assertEquals(gauge.peak, 1);
  assertEquals(log, ["a1 begins", "a1 ends", "a2 begins", "a2 ends", "a3 begins", "a3 ends"]);
});

Deno.test("two serial() have separate locks", async () => {
  const { gauge, tools } = workshop();
  const runs = ["a1", "a2"].map((call) => agent({ model: calling(call), tools, use: [serial()] }).run("Go").result);
  await Promise.all(runs);
  assertEquals(gauge.peak, 2);
});

Deno.test("serial() removes a stopped run from the queue", async () => {
  const busy = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const { log, tools } = workshop(async (n) => {
    if (n !== 1) return;
    reached.resolve();
    await busy.promise;
  });
  const use = [serial()];
  const begin = (...calls: readonly string[]) => agent({ model: calling(...calls), tools, use }).run("Go");
  const first = begin("a1");
  await reached.promise;
  const second = begin("a2", "a3");
  const third = begin("a4");
  for await (const event of second.events) if (event.type === "approval.decided" && event.call === "call_2") break;
  await settled();
  second.stop();
  const { status, messages } = await second.result;
  assertEquals([status, ...lines(messages)], [
    "aborted",
    "user Go",
    "call a a",
    "aborted Stopped before it was done.",
    "aborted Stopped before it was done.",
  ]);
  busy.resolve();
  assertEquals([(await first.result).status, (await third.result).status], ["done", "done"]);
  assertEquals(log, ["a1 begins", "a1 ends", "a4 begins", "a4 ends"]);
});

Deno.test("serial() removes a timed-out call from the queue", async () => {
  const late = new AbortController();
  const { log, tools } = workshop(async (n) => {
    if (n === 1) late.abort(new DOMException("Too late", "TimeoutError"));
    await settled();
  });
  const patience: Middleware = {
    name: "patience",
    execute: (ctx, next) => next(ctx.callIndex === 1 ? { signal: late.signal } : {}),
  };
  const { messages } = await agent({ model: calling("a1", "a2", "a3"), tools, use: [patience, serial()] })
    .run("Go").result;
  assertEquals(log, ["a1 begins", "a1 ends", "a3 begins", "a3 ends"]);
  assertEquals(lines(messages).slice(2, 5), ["ok a1", "timeout a did not finish in time.", "ok a3"]);
});

Deno.test("serial() holds the lock during the inner layers; an outer retry releases it", async () => {
  const retrying: Middleware = {
    name: "again",
    async execute(ctx, next) {
      if (ctx.callIndex === 0) await next().catch(settled);
      return await next();
    },
  };
  const orders: string[][] = [];
  for (const order of ["before", "after"]) {
    let tries = 0;
    const { log, tools } = workshop((n) => n === 1 && tries++ === 0 ? Promise.reject(new Error("broken")) : settled());
    const use = order === "before" ? [retrying, serial()] : [serial(), retrying];
    await agent({ model: calling("a1", "a2"), tools, use }).run("Go").result;
    orders.push(log.filter((line) => line.endsWith("begins")));
  }
  assertEquals(orders, [["a1 begins", "a2 begins", "a1 begins"], ["a1 begins", "a1 begins", "a2 begins"]]);
});

Deno.test("serial() queues a call that an outer hook delays", async () => {
  const { log, tools } = workshop();
  const late: Middleware = {
    name: "late",
    async execute(ctx, next) {
      if (ctx.callIndex === 0) await settled();
      return await next();
    },
  };
  await agent({ model: calling("a1", "a2", "a3"), tools, use: [late, serial()] }).run("Go").result;
  assertEquals(log, ["a2 begins", "a2 ends", "a3 begins", "a3 ends", "a1 begins", "a1 ends"]);
});

Deno.test("serial() takes no lock for a call that an outer hook answers", async () => {
  const { log, tools } = workshop();
  const cache: Middleware = {
    name: "cache",
    execute: (ctx, next) =>
      ctx.callIndex === 0
        ? Promise.resolve({ type: "result", status: "ok", parts: [{ type: "text", text: "Known." }] })
        : next(),
  };
  await agent({ model: calling("a1", "a2"), tools, use: [cache, serial()] }).run("Go").result;
  assertEquals(log, ["a2 begins", "a2 ends"]);
});

Deno.test("serial() forgets an unused key", async () => {
  const { tools } = workshop();
  using deleted = spy(Map.prototype, "delete");
  const assistant = agent({
    model: calling("a1", "a2", "b3", "a4"),
    tools,
    use: [serial(({ input }) => `key ${JSON.stringify(input)}`.replace(/[24]/, "1"))],
  });
  await assistant.run("Go").result;
  const keys = deleted.calls.map(({ args: [key] }) => key).filter((key) => String(key).startsWith("key "));
  assertEquals(keys, ['key {"n":3}', 'key {"n":1}']);
});
