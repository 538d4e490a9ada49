import { agent, callsOf, type Middleware } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { at, batch, call, runBatch, three, weather } from "../../support/batch.ts";

Deno.test("Engine: a message during a batch skips none of its calls and is delivered after them", async () => {
  const { lines } = await runBatch(three, {
    use: [at("b", {
      async tool(_, next) {
        const result = await next();
        return { ...result, context: ["the person changed their mind"] };
      },
    })],
  });
  assertEquals(lines, [
    "call weather weather weather",
    "ok sun in a",
    "ok sun in b",
    "ok sun in c",
    "context the person changed their mind",
    "assistant Done.",
  ]);
});

Deno.test("Engine: a run stopped during a batch answers every call", async () => {
  const started = batch(three, {
    tools: [weather(({ city }) => city === "b" ? running.stop() : city)],
  });
  const running: ReturnType<typeof started.run> = started.run();
  const { result } = await running.outcome;
  const [, message, results] = result.messages;
  const calls = message?.role === "assistant" ? callsOf(message).map(({ id }) => id) : [];
  assertEquals(results?.role === "tool" && results.results.map(({ callId }) => callId), calls);
});

Deno.test("Engine: a call has one id at every point, unique in its session", async () => {
  const seen: string[] = [];
  const see = (point: string, id: string) => {
    if (seen.at(-1) !== `${point} ${id}`) seen.push(`${point} ${id}`);
  };
  const look: Middleware = {
    name: "look",
    async tool(ctx, next) {
      see("in", ctx.call.id);
      const result = await next();
      see("out", ctx.call.id);
      return result;
    },
    approval(ctx, next) {
      see("approval", ctx.call.id);
      return next();
    },
    execute(ctx, next) {
      see("execute", ctx.callId);
      see("execute", ctx.call.id);
      return next();
    },
  };
  const model = scripted({ calls: [call("a")] }, { calls: [call("a")] }, "Done.");
  const { events, result } = agent({ model, tools: [weather()], use: [look] }).run("Hi");
  for await (const event of events) {
    if (event.type === "tool.started" || event.type === "tool.finished") see(event.type, event.call);
  }
  await result;
  assertEquals(seen.filter((line) => line.endsWith(" a")).length, seen.filter((line) => line.endsWith("a_2")).length);
  assertEquals(seen.filter((line) => !line.startsWith("tool")), [
    ...["in a", "approval a", "execute a", "out a"],
    ...["in a_2", "approval a_2", "execute a_2", "out a_2"],
  ]);
});

Deno.test("Engine: stopping a run aborts the signal of every hook in flight", async () => {
  const aborted: string[] = [];
  const note = (name: string, { signal }: { readonly signal: AbortSignal }) =>
    signal.addEventListener("abort", () => aborted.push(name), { once: true });
  const inside = Promise.withResolvers<void>();
  const look: Middleware = {
    name: "look",
    session: (ctx, next) => (note("session", ctx), next()),
    prompt: (ctx, next) => (note("prompt", ctx), next()),
    turn: (ctx, next) => (note("turn", ctx), next()),
    tool: (ctx, next) => (note("tool", ctx), next({ signal: AbortSignal.any([ctx.signal]) })),
    approval: (ctx, next) => (note("approval", ctx), next({ signal: AbortSignal.any([ctx.signal]) })),
    execute: (ctx, next) => (note("execute", ctx), next({ signal: AbortSignal.any([ctx.signal]) })),
  };
  const running = batch([call("a")], {
    tools: [weather((_, ctx) => {
      note("work", ctx);
      inside.resolve();
      return new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
    })],
    use: [look],
  }).run();
  await inside.promise;
  running.stop();
  const { result } = await running.outcome;
  assertEquals(result.status, "aborted");
  assertEquals(aborted.sort(), ["approval", "execute", "prompt", "session", "tool", "turn", "work"]);
});

Deno.test("Engine: a hook that ignores its signal is abandoned and reported", async () => {
  const hang = () => new Promise<never>(() => {});
  const points = ["session", "prompt", "turn", "model", "tool", "approval", "execute", "stop"] as const;
  for (const point of points) {
    using time = new FakeTime();
    const stuck: Middleware = { name: "stuck", [point]: hang };
    const running = batch([call("a")], { use: [stuck], limits: { grace: 100 } }).run();
    await time.tickAsync();
    running.stop("enough");
    await time.tickAsync(300);
    const { result, events } = await running.outcome;
    assertEquals([point, result.status, result.reason], [point, "aborted", "enough"]);
    assertEquals(events.at(-1)?.type, "run.aborted");
    const warnings = events.flatMap((event) => event.type === "warning" ? [event.code] : []);
    assertEquals(warnings, ["hook.abandoned"]);
  }
});
