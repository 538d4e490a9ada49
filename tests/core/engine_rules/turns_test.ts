/**
 * The rules of turns: continuations and prompts, then messages, ids and signals during a batch of calls.
 */
import { agent, callsOf, continueWith, type Middleware, user } from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { at, batch, call, drop, runBatch, three, weather } from "../../support/batch.ts";
import { lines } from "../../support/transcript_lines.ts";

Deno.test("Engine: a stop hook that always continues sees the count and is limited", async () => {
  const seen: string[] = [];
  const model = scripted("1", "2", "3", "4");
  const tireless: Middleware = {
    name: "tireless",
    stop(ctx) {
      seen.push(`${ctx.continuations} of ${ctx.limit}`);
      return Promise.resolve(continueWith("more"));
    },
  };
  const { status, reason, text } = await agent({ model, use: [tireless], limits: { continuations: 3 } }).run("Hi")
    .result;
  assertEquals(seen, ["0 of 3", "1 of 3", "2 of 3", "3 of 3"]);
  assertEquals([status, reason, text], ["limit", "continuations", "4"]);
  model.done();
});

Deno.test("Engine: continuations count as turns, so the limit of turns bounds them", async () => {
  const tireless: Middleware = { name: "tireless", stop: () => Promise.resolve(continueWith("more")) };
  const model = scripted("1", "2");
  const { status, reason } = await agent({ model, use: [tireless], limits: { turns: 2 } }).run("Hi").result;
  assertEquals([status, reason], ["limit", "turns"]);
});

Deno.test("Engine: a batch of calls resets the count of continuations", async () => {
  const seen: number[] = [];
  const model = scripted("1", { calls: [call("a")] }, "2", "3");
  const some: Middleware = {
    name: "some",
    async stop(ctx, next) {
      seen.push(ctx.continuations);
      return seen.length < 3 ? continueWith("more") : await next();
    },
  };
  await agent({ model, tools: [weather()], use: [some] }).run("Hi").result;
  assertEquals(seen, [0, 0, 1]);
});

Deno.test("Engine: stop runs for an answer without calls, never between batches", async () => {
  const log: string[] = [];
  const model = scripted({ text: "Let me see.", calls: [call("a")] }, { calls: [call("b")] }, "Done.");
  const look: Middleware = {
    name: "look",
    turn(ctx, next) {
      log.push(`turn ${ctx.index}`);
      return next();
    },
    stop(ctx, next) {
      log.push(`stop ${lines([ctx.message])}`);
      return next();
    },
  };
  await agent({ model, tools: [weather()], use: [look] }).run("Hi").result;
  assertEquals(log, ["turn 1", "turn 2", "turn 3", "stop assistant Done."]);
});

Deno.test("Engine: a prompt enters once; in a resumed run its changes are ignored", async () => {
  const log: string[] = [];
  const started = batch([call("a", { name: "drop" })], {
    tools: [drop()],
    use: [{
      name: "look",
      async prompt(ctx, next) {
        log.push(`prompt ${ctx.resumed} ${lines([ctx.prompt])}`);
        return await next({ prompt: user(`${log.length}`), context: [`context ${log.length}`] });
      },
      model(ctx, next) {
        log.push(`model ${ctx.turn}`);
        return next();
      },
    }],
  });
  const first = await started.run().outcome;
  const second = await started.resume(first.result.session, [{ callId: "a", type: "approve" }]).outcome;
  assertEquals(log, ["prompt false user Hi", "model 1", "prompt true user 1", "model 2"]);
  assertEquals(lines(second.result.messages), [
    "user 1",
    "prompt context 1",
    "call drop",
    "ok dropped a",
    "assistant Done.",
  ]);
  const prompts = [...first.events, ...second.events].filter(({ type }) => type === "prompt.accepted");
  assertEquals(prompts.length, 1);
});

Deno.test("Engine: additions to one request or one turn are not in the next", async () => {
  const model = scripted({ calls: [call("a")] }, "Done.");
  const adds: Middleware = {
    name: "adds",
    turn: (ctx, next) => next({ context: [`turn ${ctx.index}`] }),
    model: (ctx, next) => next({ request: { messages: [...ctx.request.messages, user(`request ${ctx.turn}`)] } }),
  };
  const { messages } = await agent({ model, tools: [weather()], use: [adds] }).run("Hi").result;
  assertEquals(model.requests.map((request) => lines(request.messages)), [
    ["user Hi", "turn turn 1", "user request 1"],
    ["user Hi", "call weather", "ok sun in a", "turn turn 2", "user request 2"],
  ]);
  assertEquals(lines(messages), ["user Hi", "call weather", "ok sun in a", "assistant Done."]);
});

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
