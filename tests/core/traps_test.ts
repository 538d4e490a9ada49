import {
  agent,
  allow,
  type AnyTool,
  ask,
  callsOf,
  cancelled,
  continueWith,
  denied,
  deny,
  type Middleware,
  type RunResult,
  skipped,
  text,
  user,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { at, batch, call, drop, gauge, runBatch, settled, three, watch, weather } from "../support/batch.ts";
import { lines } from "../support/transcript_lines.ts";

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

// ── order and parallelism ──

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

// ── decisions ──

Deno.test("Engine: the first deny ends the approval, and all guards must allow", async () => {
  const log: string[] = [];
  const guard = (name: string, verdict: ReturnType<typeof allow>): Middleware => ({
    name,
    approval(ctx) {
      log.push(`${name} ${ctx.call.id}`);
      return Promise.resolve(verdict);
    },
  });
  const some = at("a", { approval: () => Promise.resolve(deny("no")) });
  await runBatch([call("a"), call("b")], { use: [guard("first", allow()), some, guard("last", allow())] });
  assertEquals(log, ["first a", "first b", "last b"]);
});

Deno.test("Engine: an answer in place of a tool is approved, reported as a call, and reviewed", async () => {
  const log: string[] = [];
  const { events, lines } = await runBatch([call("a")], {
    tools: [weather(() => log.push("run"))],
    use: [
      watch(log),
      { name: "cache", tool: () => Promise.resolve(text("cached")) },
      {
        name: "guard",
        approval(ctx, next) {
          log.push(`asked ${ctx.proposed?.status}`);
          return next();
        },
      },
    ],
  });
  assertEquals(log, ["in a", "asked ok", "out a ok", "finally a"]);
  const reported = events.flatMap((event) => /^(tool|approval)\./.test(event.type) ? [event.type] : []);
  assertEquals(reported, ["tool.started", "approval.decided", "tool.finished"]);
  assertEquals(lines, ["call weather", "ok cached", "assistant Done."]);
});

Deno.test("Engine: an empty answer is an answer; a missing answer is an error", async () => {
  const log: string[] = [];
  const tools = [weather(() => log.push("run"))];
  const empty = await runBatch([call("a")], {
    tools,
    use: [{ name: "empty", tool: () => Promise.resolve(text("")) }],
  });
  assertEquals(empty.lines, ["call weather", "ok", "assistant Done."]);
  const missing = undefined as never; // a hook written in JavaScript may return this
  const none = await runBatch([call("a")], { tools, use: [{ name: "none", tool: () => Promise.resolve(missing) }] });
  assertEquals(
    String(none.result.error),
    `TypeError: Cannot leave tool: "none" returned nothing; return the result of next(), or an answer`,
  );
  assertEquals(log, []);
});

Deno.test("Engine: a denied call does not end the turn; the model receives the reason", async () => {
  const started = batch([call("a")], { use: [{ name: "guard", approval: () => Promise.resolve(deny("not here")) }] });
  const { result } = await started.run().outcome;
  assertEquals(result.status, "done");
  assertEquals(started.model.requests.map(({ messages }) => lines(messages)), [
    ["user Hi"],
    ["user Hi", "call weather", "denied not here"],
  ]);
});

Deno.test("Engine: a denied call comes out through tool, and never enters execute", async () => {
  const log: string[] = [];
  const inner: Middleware = {
    name: "inner",
    execute(ctx, next) {
      log.push(`execute ${ctx.callId}`);
      return next();
    },
    error(_, next) {
      log.push("error");
      return next();
    },
  };
  await runBatch(three, {
    use: [
      watch(log),
      inner,
      at("a", { approval: () => Promise.resolve(deny("no")) }),
      at("b", { tool: () => Promise.resolve(denied("no")) }),
    ],
  });
  assertEquals(log, [
    ...["in a", "in b", "in c", "execute c"],
    ...["out a denied", "finally a", "out b denied", "finally b", "out c ok", "finally c"],
  ]);
});

Deno.test("Engine: a skipped call is answered, and not repeated in the next run", async () => {
  const log: string[] = [];
  const model = scripted({ calls: three }, "Done.", "Again.");
  const assistant = agent({
    model,
    tools: [weather(({ city }) => log.push(`run ${city}`))],
    use: [at("b", { tool: () => Promise.resolve(skipped("not now")) })],
  });
  const { session } = await assistant.run("Hi").result;
  const { messages } = await assistant.run({ prompt: "And?", session }).result;
  assertEquals(log, ["run a", "run c"]);
  const [, second] = model.requests;
  assertEquals(lines(second?.messages ?? []), [
    "user Hi",
    "call weather weather weather",
    "ok 1",
    "skipped not now",
    "ok 2",
  ]);
  assertEquals(lines(messages.slice(-2)), ["user And?", "assistant Again."]);
});

Deno.test("Engine: denying a call, continuing and adding context happen at three different points", async () => {
  let stops = 0;
  const speaks: Middleware = {
    name: "speaks",
    async approval(ctx, next) {
      return ctx.call.id === "a" ? deny("blocked") : await next();
    },
    async tool(ctx, next) {
      const result = await next();
      return ctx.call.id === "b" ? { ...result, context: ["mind the rain"] } : result;
    },
    async stop(_, next) {
      return stops++ === 0 ? continueWith("not yet") : await next();
    },
  };
  const model = scripted({ calls: three }, "Done.", "Really done.");
  const { messages } = await agent({ model, tools: [weather()], use: [speaks] }).run("Hi").result;
  assertEquals(lines(messages), [
    "user Hi",
    "call weather weather weather",
    "denied blocked",
    "ok sun in b",
    "ok sun in c",
    "context mind the rain",
    "assistant Done.",
    "stop not yet",
    "assistant Really done.",
  ]);
});

Deno.test("Engine: an unknown verdict of a guard denies the call", async () => {
  for (const word of [{ decision: "approve" }, { decision: "block" }, { permissionDecision: "allow" }, {}]) {
    const foreign = word as never; // a hook written for another system may return this
    const { lines } = await runBatch([call("a")], {
      use: [{ name: "foreign", approval: () => Promise.resolve(foreign) }],
    });
    assertEquals(lines, ["call weather", "denied A guard failed.", "assistant Done."]);
  }
});

Deno.test("Engine: a deny without a reason has a default text", async () => {
  const speechless = { type: "deny" } as never; // a guard written in JavaScript may return this
  for (const verdict of [speechless, deny("")]) {
    const { lines } = await runBatch([call("a")], {
      use: [{ name: "speechless", approval: () => Promise.resolve(verdict) }],
    });
    assertEquals(lines, ["call weather", "denied It is not allowed.", "assistant Done."]);
  }
  const started = batch([call("a", { name: "drop" })], { tools: [drop()] });
  const { result: { session } } = await started.run().outcome;
  const { lines } = await started.resume(session, [{ callId: "a", type: "deny", reason: "" }]).outcome;
  assertEquals(lines, ["call drop", "denied A person said no.", "assistant Done."]);
});

Deno.test("Engine: a changed input is not an approval; it is validated, and every guard sees it", async () => {
  const log: string[] = [];
  const elsewhere: Middleware = { name: "elsewhere", tool: (_, next) => next({ input: { city: "oslo" } }) };
  const asked = await runBatch([call("a", { name: "drop" })], { tools: [drop(log)], use: [elsewhere] });
  assertEquals(asked.result.questions.map(({ input }) => input), [{ city: "oslo" }]);
  const wrong: Middleware = { name: "wrong", tool: (_, next) => next({ input: {} }) };
  const invalid = await runBatch([call("a", { name: "drop" })], { tools: [drop(log)], use: [wrong] });
  assertEquals(
    invalid.lines[1],
    "error The input of drop is not valid: city: Invalid input: expected string, received undefined",
  );
  const edits: Middleware = { name: "edits", approval: () => Promise.resolve(allow({ input: { city: "oslo" } })) };
  const noOslo: Middleware = {
    name: "noOslo",
    approval: async ({ input }, next) => JSON.stringify(input).includes("oslo") ? deny("no oslo") : await next(),
  };
  const recheck = await runBatch([call("a")], { use: [edits, noOslo] });
  assertEquals(recheck.lines[1], "denied no oslo");
  const denies: Middleware = { name: "denies", approval: () => Promise.resolve(deny("no")) };
  const discarded = await runBatch([call("a")], { use: [denies, edits] });
  assertEquals(discarded.lines[1], "denied no");
  assertEquals(log, []);
});

Deno.test("Engine: no allow overrides a deny, wherever it stands", async () => {
  const bypass: Middleware = { name: "bypass", approval: () => Promise.resolve(allow()) };
  const rule: Middleware = { name: "rule", approval: () => Promise.resolve(deny("by rule")) };
  for (const use of [[bypass, rule], [rule, bypass], [bypass, rule, bypass]]) {
    const { lines } = await runBatch([call("a")], { use });
    assertEquals(lines[1], "denied by rule");
  }
});

// ── the loop ──

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

// ── the cleanup ──

/** Runs an agent that logs every cleanup. Returns the log and the result. */
async function cleanups(
  use: readonly Middleware[],
  { tools = [weather()], run = {} }: { tools?: readonly AnyTool[]; run?: { readonly signal?: AbortSignal } } = {},
): Promise<{ readonly log: readonly string[]; readonly result: RunResult }> {
  const log: string[] = [];
  const notes: Middleware = {
    name: "notes",
    async abort(ctx, next) {
      log.push(ctx.reason);
      await next();
    },
  };
  const model = scripted({ calls: [call("a")] }, "Done.");
  const result = await agent({ model, tools, use: [notes, ...use], limits: { turns: 2 } })
    .run({ prompt: "Hi", ...run }).result;
  return { log, result };
}

Deno.test("Engine: a run that was stopped or failed is cleaned up once", async () => {
  const gone = new AbortController();
  const leaves = weather(() => gone.abort());
  const stopped = await cleanups([], { tools: [leaves], run: { signal: gone.signal } });
  assertEquals([stopped.result.status, stopped.log], ["aborted", ["signal"]]);

  const broken: Middleware = { name: "broken", stop: () => Promise.reject(new Error("boom")) };
  const failed = await cleanups([broken]);
  assertEquals([failed.result.status, failed.log], ["failed", ["failure"]]);

  using time = new FakeTime();
  const slow = weather((_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
  );
  const late = cleanups([], { tools: [slow] });
  await time.tickAsync(300_000);
  const { result, log } = await late;
  assertEquals([result.status, result.reason, log], ["limit", "deadline", ["deadline"]]);
});

Deno.test("Engine: a run that paused, was refused or reached a limit has no cleanup", async () => {
  const paused = await cleanups([{ name: "asks", approval: () => Promise.resolve(ask("Sure?")) }]);
  assertEquals([paused.result.status, paused.log], ["paused", []]);

  const ends: Middleware = {
    name: "ends",
    turn(ctx) {
      throw ctx.run.end("enough", { as: "failed" });
    },
  };
  const ended = await cleanups([ends]);
  assertEquals([ended.result.status, ended.log], ["failed", ["enough"]]);

  const refuses = await cleanups([{ name: "refuses", prompt: () => Promise.resolve(cancelled("no")) }]);
  assertEquals([refuses.result.status, refuses.log], ["cancelled", []]);

  const limited = await cleanups([{ name: "tireless", stop: () => Promise.resolve(continueWith("more")) }]);
  assertEquals([limited.result.status, limited.log], ["limit", []]);

  const done = await cleanups([]);
  assertEquals([done.result.status, done.log], ["done", []]);
});

Deno.test("Engine: an error in the cleanup or in an error hook never hides the first error", async () => {
  const broken = (name: string): Middleware => ({
    name,
    stop: () => Promise.reject(new Error("the first")),
    error: () => Promise.reject(new Error("the second")),
    abort: () => Promise.reject(new Error("the third")),
  });
  const errors: string[] = [];
  const { result, events } = agent({ model: scripted("Done."), use: [broken("broken")] })
    .run({ prompt: "Hi", onError: (error) => errors.push(String(error)) });
  const { status, error } = await result;
  assertEquals([status, String(error)], ["failed", "Error: the first"]);
  assertEquals(errors, ["Error: the second", "Error: the third", "Error: the first"]);
  const reported = (await Array.fromAsync(events)).flatMap((event) => event.type === "warning" ? [event.point] : []);
  assertEquals(reported, ["error", "abort"]);
});

// ── messages that arrive meanwhile ──

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

Deno.test("Engine: a cleanup that hangs is abandoned", async () => {
  using time = new FakeTime();
  const running = batch([call("a")], {
    tools: [weather(() => new Promise(() => {}))],
    use: [{ name: "stuck", abort: () => new Promise<never>(() => {}) }],
    limits: { grace: 100 },
  }).run();
  await time.tickAsync();
  running.stop("enough");
  await time.tickAsync(100);
  await time.tickAsync(100);
  const { result, events } = await running.outcome;
  assertEquals([result.status, result.reason], ["aborted", "enough"]);
  const warnings = events.flatMap((event) => event.type === "warning" ? [`${event.code} ${event.point}`] : []);
  assertEquals(warnings, ["tool.abandoned execute", "hook.abandoned abort"]);
});
