/**
 * `testMiddleware()` finds each broken law: next(), errors, interrupts, frozen values, transcripts, signals, leaks and isolation.
 */
import {
  type Change,
  compacted,
  denied,
  deny,
  type Emit,
  End,
  finish,
  isInterrupt,
  mapText,
  type Middleware,
  Pause,
  Paused,
  type Question,
  reply,
  rewrite,
  type RunResult,
  type Scope,
  state,
  text,
} from "@jizai/jizai";
import { testMiddleware } from "@jizai/jizai/testing";
import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../../support/fake_time.ts";
import { everywhere, fixesOf, reportOf } from "../../support/middleware_report.ts";

Deno.test("testMiddleware() finds a second next() where it is not allowed, and names the place", async () => {
  const report = await reportOf((): Middleware => ({
    name: "twice",
    async tool(_, next) {
      await next();
      return await next();
    },
  }));
  assertEquals(report, [
    '"twice" breaks the law that a middleware calls next() as the point allows, and awaits it:',
    '- at tool, Cannot call next() twice at tool in "twice": retry at execute (in a plain run)',
  ]);
});

for (
  const [point, middleware] of Object.entries<Middleware>({
    model: { model: (_, next) => (next(), Promise.resolve(reply("Done."))) },
    tool: { tool: (_, next) => (next(), Promise.resolve(text("Done."))) },
    stop: { stop: (_, next) => (next(), Promise.resolve(finish())) },
  })
) {
  Deno.test(`testMiddleware() finds a next() that is not awaited at ${point}`, async () => {
    assertEquals(await reportOf(() => ({ name: "hasty", ...middleware })), [
      '"hasty" breaks the law that a middleware calls next() as the point allows, and awaits it:',
      `- at ${point}, it did not wait for next() (in a plain run)`,
    ]);
  });
}

Deno.test("testMiddleware() finds a race that abandons the inner layers", async () => {
  const report = await reportOf((): Middleware => ({
    name: "racing",
    execute: (_, next) => Promise.race([next(), Promise.reject(new DOMException("late", "TimeoutError"))]),
  }));
  assertEquals(report.slice(-2), [
    '"racing" breaks the law that a middleware calls next() as the point allows, and awaits it:',
    "- at execute, it did not wait for next() (in a plain run)",
  ]);
});

Deno.test("testMiddleware() finds a middleware that throws an error of its own", async () => {
  const report = await reportOf(() => ({ name: "own", stop: () => Promise.reject(new Error("mine")) }));
  assertEquals(report, [
    '"own" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- at stop, it threw Error: mine (in a plain run)",
  ]);
});

Deno.test("testMiddleware() finds a middleware that hides a failure behind its own", async () => {
  const report = await reportOf((): Middleware => ({
    name: "hiding",
    async execute(_, next) {
      try {
        return await next();
      } catch (error) {
        if (isInterrupt(error)) throw error;
        throw new Error("hidden");
      }
    },
  }));
  assertEquals(report, [
    '"hiding" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- at execute, Error: fail always fails was thrown by the inner layers, and it threw Error: hidden (in a plain run)",
    "- at execute, Error: trouble was thrown by the inner layers, and it threw Error: hidden (when an inner hook throws at execute)",
  ]);
});

Deno.test("testMiddleware() accepts a failure as the cause of another", async () => {
  await testMiddleware((): Middleware => ({
    async execute(_, next) {
      try {
        return await next();
      } catch (cause) {
        throw isInterrupt(cause) ? cause : new Error("wrapped", { cause });
      }
    },
  }));
});

Deno.test("testMiddleware() finds a hook that does not return", async () => {
  const report = await reportOf((): Middleware => ({
    name: "silent",
    approval: (_, next) => next().then(() => undefined as never),
  }));
  assertEquals(report, [
    '"silent" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- at approval, it returned nothing (in a plain run)",
  ]);
});

Deno.test("testMiddleware() finds a middleware that catches the end or the pause of a run", async () => {
  const report = await reportOf((): Middleware => ({
    name: "greedy",
    async tool(_, next) {
      try {
        return await next();
      } catch {
        return text("never mind");
      }
    },
  }));
  assertEquals(report, [
    '"greedy" breaks the law that a middleware passes on what ends or pauses a run:',
    "- at tool, Paused was thrown by the inner layers, and it answered (when a person agrees)",
    "- at tool, End was thrown by the inner layers, and it answered (when an inner hook ends the run at tool)",
    "- at tool, Pause was thrown by the inner layers, and it answered (when an inner hook pauses the run at tool)",
  ]);
});

Deno.test("testMiddleware() finds a middleware that replaces the end of a run", async () => {
  const report = await reportOf((): Middleware => ({
    name: "turning",
    async model(ctx, next) {
      try {
        return await next();
      } catch (error) {
        throw error instanceof End ? ctx.run.pause("Really?") : error;
      }
    },
  }));
  assertEquals(report, [
    '"turning" breaks the law that a middleware passes on what ends or pauses a run:',
    "- at model, End was thrown by the inner layers, and it threw Pause: The run pauses: Really? (when an inner hook ends the run at model)",
  ]);
});

/** Replaces a pause or an end of the inner layers. */
function replacing<E>(type: new (...args: never[]) => E, replace: (interrupt: E) => unknown): () => Middleware {
  return () => ({
    name: "replacing",
    async tool(_, next) {
      try {
        return await next();
      } catch (error) {
        throw error instanceof type ? replace(error) : error;
      }
    },
  });
}

Deno.test("testMiddleware() accepts a middleware that rewords the questions of a pause or the reason of an end", async () => {
  const reworded = (each: Question) => ({ ...each, questions: each.questions.map(() => "[redacted]") });
  await testMiddleware(replacing(Pause, ({ questions, saved }) => new Pause(questions.map(reworded), saved)));
  await testMiddleware(replacing(End, (end) => new End("[redacted]", end)));
});

Deno.test("testMiddleware() finds a pause that is replaced by one with other questions, or about another call", async () => {
  const replacements: readonly ((pause: Pause) => unknown)[] = [
    ({ questions }) => new Pause([...questions, ...questions]),
    () => new Pause([]),
    ({ questions }) => new Pause(questions.map((each) => ({ ...each, callId: "other" }))),
    ({ questions }) => new Pause(questions.map((each) => ({ ...each, questions: [...each.questions, "And?"] }))),
    ({ questions }) => new Pause(questions.map((each) => ({ ...each, questions: [] }))),
    () => new End("over"),
    () => new Paused("call"),
    (pause) => new Error("It pauses", { cause: pause }),
  ];
  for (const [index, replace] of replacements.entries()) {
    const [law, ...findings] = await reportOf(replacing(Pause, replace));
    assertEquals(law, '"replacing" breaks the law that a middleware passes on what ends or pauses a run:', `${index}`);
    const start = "- at tool, Pause was thrown by the inner layers, and it threw ";
    assertEquals(findings[0]?.slice(0, start.length), start, `${index}`);
  }
});

Deno.test("testMiddleware() finds an end that is replaced by one of another kind", async () => {
  const replacements: readonly ((end: End) => unknown)[] = [
    (end) => new End(end.reason, { ...end, as: end.as === "failed" ? "done" : "failed" }),
    (end) => new End(end.reason, { ...end, rollback: !end.rollback }),
    (end) => new End(end.reason, { ...end, withhold: !end.withhold }),
    (end) => new End(end.reason, { ...end, tree: !end.tree }),
    () => new Pause([]),
  ];
  for (const [index, replace] of replacements.entries()) {
    const [law, ...findings] = await reportOf(replacing(End, replace));
    assertEquals(law, '"replacing" breaks the law that a middleware passes on what ends or pauses a run:', `${index}`);
    const start = "- at tool, End was thrown by the inner layers, and it threw ";
    assertEquals(findings[0]?.slice(0, start.length), start, `${index}`);
  }
});

for (
  const [what, middleware] of Object.entries<Middleware>({
    "an input": { tool: (ctx, next) => (Object.assign(ctx.input as object, { x: 1 }), next()) },
    "a context": { turn: (ctx, next) => (Object.assign(ctx, { context: [] }), next()) },
    "a request": { model: (ctx, next) => (Object.assign(ctx.request, { messages: [] }), next()) },
    "a message": { stop: (ctx, next) => (Object.assign(ctx.message, { parts: [] }), next()) },
    "settings": { session: (ctx, next) => (Object.assign(ctx.settings.limits, { turns: 1 }), next()) },
    "a call": { approval: (ctx, next) => (Object.assign(ctx.call, { name: "other" }), next()) },
    "a result": { execute: async (_, next) => Object.assign(await next(), { status: "ok" }) },
    "an event": {
      prompt: (ctx, next) => next({ emit: (event) => ctx.emit(Object.assign(event, { type: "notice", text: "" })) }),
    },
  })
) {
  Deno.test(`testMiddleware() finds a middleware that writes to ${what}`, async () => {
    const [point] = Object.keys(middleware);
    const report = await reportOf(() => ({ name: "writing", ...middleware }));
    assertEquals(report.map((line) => line.replace(/(TypeError): .* \(/, "$1 (")), [
      '"writing" breaks the law that a middleware changes nothing that it was given:',
      `- at ${point}, TypeError (in a plain run)`,
    ]);
  });
}

Deno.test("testMiddleware() does not change the vars of its caller", async () => {
  const vars = { user: "Ada", seen: [] as string[] };
  const writing = (): Middleware<typeof vars> => ({
    name: "writing",
    prompt: ({ vars }, next) => (Object.assign(vars, { user: "Eve" }), next()),
  });
  const report = await reportOf(writing, { vars });
  assertEquals(report, [
    '"writing" breaks the law that a middleware changes nothing that it was given:',
    "- at prompt, TypeError: Cannot assign to read only property 'user' of object '#<Object>' (in a plain run)",
  ]);
  vars.user = "Bob";
  await testMiddleware((): Middleware<typeof vars> => ({
    prompt: ({ vars }, next) => (vars.seen.push(vars.user), next()),
  }), { vars });
  assertEquals(new Set(vars.seen), new Set(["Bob"]));
});

Deno.test("testMiddleware() finds a middleware that leaves a call without a result", async () => {
  const report = await reportOf((): Middleware => ({
    name: "orphan",
    async model({ request }, next) {
      return await next({ request: { messages: request.messages.filter(({ role }) => role !== "tool").slice(0, 2) } });
    },
  }), {});
  assertEquals(report.map((line) => line.replace(/(no result for call call_1).* \(/, "$1 (")), [
    '"orphan" breaks the law that a middleware leaves the transcript valid:',
    "- at model, The messages were not valid: no result for call call_1 (in a plain run)",
    "- at model, The messages were not valid: no result for call call_1 (when a person agrees)",
  ]);
});

Deno.test("testMiddleware() finds a compaction that separates calls from their results", async () => {
  const report = await reportOf((): Middleware => ({
    name: "cutting",
    compact: ({ transcript }) => Promise.resolve(compacted(transcript.slice(0, 2))),
  }));
  assertEquals(report.map((line) => line.replace(/no result for call call_1.* \(/, "... (")), [
    '"cutting" breaks the law that a middleware leaves the transcript valid:',
    "- at compact, The messages were not valid: ... (when the transcript is compacted)",
  ]);
});

Deno.test("testMiddleware() finds a response that makes the same call twice", async () => {
  const report = await reportOf((): Middleware => ({
    name: "doubling",
    async model(_, next) {
      const response = await next();
      return { ...response, parts: [...response.parts, ...response.parts] };
    },
  }));
  assertEquals(report, [
    '"doubling" breaks the law that a middleware leaves the transcript valid:',
    "- at model, The response was not valid: its calls had ids of other calls (in a plain run)",
  ]);
});

Deno.test("testMiddleware() finds a text that is changed only in the response, at model and at turn", async () => {
  const masked = (text: string) => text.replace("is all", "[redacted]");
  const masking: Readonly<Record<string, Middleware>> = {
    model: { model: async (_, next) => mapText(await next(), masked) },
    turn: {
      async turn(_, next) {
        const result = await next();
        return { ...result, response: mapText(result.response, masked) };
      },
    },
  };
  for (const [point, hooks] of Object.entries(masking)) {
    const [law, first = "", ...more] = await reportOf(() => ({ name: "masking", ...hooks }));
    assertEquals(law, '"masking" breaks the law that a middleware streams the text that it returns:');
    const start = `- at ${point}, it streamed "That is all." and returned "That [redacted]." (in a plain run`;
    assertEquals([first.slice(0, start.length), more], [start, []]);
  }
});

Deno.test("testMiddleware() finds deltas that are changed, and the response is not", async () => {
  const report = await reportOf((): Middleware => ({
    name: "silent",
    model: (ctx, next) => next({ emit: (event) => event.type === "text.delta" ? undefined : ctx.emit(event) }),
  }));
  assertEquals(report.slice(0, 2), [
    '"silent" breaks the law that a middleware streams the text that it returns:',
    '- at model, it streamed "" and returned "I look it up." (in a plain run)',
  ]);
});

Deno.test("testMiddleware() accepts rewrite(), and a response that is withdrawn after its deltas", async () => {
  await testMiddleware((): Middleware => ({
    name: "rewriting",
    model: rewrite({ text: (text) => [text.toUpperCase(), ""] }),
  }));
  await testMiddleware((): Middleware => ({
    name: "withdrawing",
    model: async (_, next) => ({ ...await next(), parts: [], finish: "filter" }),
  }));
});

Deno.test("testMiddleware() finds a signal that was replaced rather than narrowed", async () => {
  const report = await reportOf((): Middleware => ({
    name: "deaf",
    execute: (_, next) => next({ signal: new AbortController().signal }),
  }));
  assertEquals(report, [
    '"deaf" breaks the law that a middleware stops when its signal aborts:',
    "- at execute, the inner signal does not abort with ctx.signal (when stopped while tools run)",
  ]);
});

Deno.test("testMiddleware() finds a middleware that waits and ignores its signal", async () => {
  using time = new FakeTime();
  const waiting: (() => void)[] = [];
  const ignoring = (): Middleware => ({
    name: "deaf",
    async stop({ signal }, next) {
      const result = await next();
      if (signal.aborted) await new Promise<void>((resolve) => waiting.push(resolve));
      return result;
    },
  });
  const report = await advanceUntilSettled(time, reportOf(ignoring));
  waiting.forEach((resolve) => resolve());
  assertEquals(report, [
    '"deaf" breaks the law that a middleware stops when its signal aborts:',
    "- A hook did not stop when its signal aborted. (when an inner hook is stopped at stop)",
  ]);
});

Deno.test("testMiddleware() stops waiting for a middleware that hangs", async () => {
  const report = await reportOf(() => ({ name: "stuck", prompt: () => new Promise<never>(() => {}) }), { time: 50 });
  assertEquals(report, [
    '"stuck" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- a run did not end within 50 ms (in a plain run)",
  ]);
});

Deno.test("testMiddleware() finds a timer that is not cleared, and the place where it was set", async () => {
  const leaving = (): Middleware => ({
    name: "leaving",
    async execute(_, next) {
      setTimeout(() => {}, 0);
      return await next();
    },
  });
  const { message } = await assertRejects(() => testMiddleware(leaving), Error);
  const place =
    /- a setTimeout\(\) of 0 ms, set at file:.*broken_laws_test\.ts:\d+:\d+ \(in a plain run, and \d+ more\)/;
  assertEquals(
    message.replace(place, "..."),
    [
      '"leaving" breaks the law that a middleware leaves no listener and no timer behind:',
      "...",
      "  Clear timers and remove listeners in a finally block.",
    ].join("\n"),
  );
  await new Promise((resolve) => setTimeout(resolve, 1));
});

Deno.test("testMiddleware() finds an interval and a listener that are not removed", async () => {
  const running: ReturnType<typeof setInterval>[] = [];
  const report = await reportOf((): Middleware => ({
    name: "staying",
    prompt(_, next) {
      running.push(setInterval(() => {}, 1_000));
      return next();
    },
    tool({ signal }, next) {
      signal.addEventListener("abort", () => {}, { once: true });
      return next();
    },
  }));
  running.forEach(clearInterval);
  assertEquals(
    report,
    [
      '"staying" breaks the law that a middleware leaves no listener and no timer behind:',
      "- a setInterval() of 1000 ms, set (in a plain run)",
      "- a listener on ctx.signal, added (in a plain run)",
    ].map((line) => line.replace(/, at \w+ \(/, ", at $& (").replace(/, at , (at \w+) \( \(/, ", $1 (")),
  );
});

Deno.test("testMiddleware() restores the timers and listeners, also if a test fails", async () => {
  const before = [globalThis.setTimeout, globalThis.clearInterval, EventTarget.prototype.addEventListener];
  await assertRejects(() => testMiddleware(() => ({ stop: () => Promise.reject(new Error("no")) })));
  const after = [globalThis.setTimeout, globalThis.clearInterval, EventTarget.prototype.addEventListener];
  assertEquals(after.map((each, index) => each === before[index]), [true, true, true]);
});

Deno.test("testMiddleware() keeps parallel tests apart", async () => {
  const before = globalThis.setTimeout;
  const bad = (): Middleware => ({ name: "bad", stop: () => Promise.reject(new Error("no")) });
  const results = await Promise.allSettled([
    testMiddleware(() => everywhere((_, next) => next())),
    testMiddleware(bad),
    testMiddleware(() => everywhere((_, next) => next())),
  ]);
  assertEquals(results.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assertEquals(globalThis.setTimeout === before, true);
});

Deno.test("testMiddleware() ignores timers of the runtime, and reports those of the middleware", async () => {
  // the frame of the function has the place that frames of Node's own modules have
  const keepAlive: () => void = (0, eval)(
    "(() => void setTimeout(() => {}, 1))\n//# sourceURL=node:internal/deps/undici/undici",
  );
  await testMiddleware((): Middleware => ({
    name: "fetching",
    execute: async (_ctx, next) => {
      keepAlive();
      return await next();
    },
  }));
  const timers: ReturnType<typeof setTimeout>[] = [];
  const leaking = (): Middleware => ({
    name: "leaking",
    execute: async (_ctx, next) => {
      timers.push(setTimeout(() => {}, 60_000));
      return await next();
    },
  });
  assertEquals(await fixesOf(leaking), ["Clear timers and remove listeners in a finally block."]);
  for (const timer of timers) clearTimeout(timer);
});

Deno.test("testMiddleware() finds state in the closure that outlives a run", async () => {
  const counting = (): Middleware => {
    let calls = 0;
    return { name: "counting", tool: (_, next) => ++calls > 8 ? Promise.resolve(denied("Enough.")) : next() };
  };
  const report = await reportOf(counting);
  assertEquals(report.slice(0, 1), ['"counting" breaks the law that a middleware keeps one run apart from another:']);
  await testMiddleware(counting, { shares: true });
});

Deno.test("testMiddleware() finds data that one run passes to another", async () => {
  const report = await reportOf((): Middleware => {
    let prompt = "";
    return {
      name: "telling",
      prompt: (ctx, next) => (prompt = JSON.stringify(ctx.prompt.parts), next()),
      turn: (_, next) => next({ context: [prompt] }),
    };
  });
  assertEquals(report.map((line) => /Beta.*, and alone .*Alpha.* \(in several runs\)/.test(line)), [false, true]);
});

Deno.test("testMiddleware() finds run state that does not survive a pause in another process", async () => {
  const begun = state("begun", () => new Date(0));
  const report = await reportOf((): Middleware => ({
    name: "keeping",
    tool: (ctx, next) => (begun.get(ctx).getTime(), next()),
  }));
  assertEquals(report, [
    '"keeping" breaks the law that a middleware passes on the results and errors of the inner layers:',
    "- at tool, it threw TypeError: begun.get(...).getTime is not a function (when a person agrees)",
  ]);
});

Deno.test("testMiddleware() finds a second next() at execute for a tool that is not idempotent", async () => {
  const law = '"twice" breaks the law that a middleware calls next() as the point allows, and awaits it:';
  const runsOnce = (name: string) =>
    `- at execute, Cannot call next() twice at execute in "twice": ${name} runs once; ` +
    "expected a tool with `idempotent: true`, or one that has begun a step (in a plain run)";
  const afterSuccess: Middleware = { name: "twice", execute: async (_, next) => (await next(), await next()) };
  const [named, first] = (await reportOf(() => afterSuccess)).slice(-5);
  assertEquals([named, first], [law, runsOnce("echo")]);
  const afterFailure: Middleware = { name: "twice", execute: (_, next) => next().catch(() => next()) };
  assertEquals((await reportOf(() => afterFailure)).filter((line) => line === runsOnce("fail")), [runsOnce("fail")]);
  await testMiddleware((): Middleware => ({
    execute: async ({ tool }, next) => {
      const result = await next();
      return tool.idempotent ? await next() : result;
    },
  }));
});

for (const point of ["prompt", "session"] as const) {
  Deno.test(`testMiddleware() finds a text that is changed only in the result, at ${point}`, async () => {
    const loud = async <R extends { readonly text: string }>(_: unknown, next: () => Promise<R>) => {
      const result = await next();
      return { ...result, text: result.text.toUpperCase() };
    };
    const report = await reportOf((): Middleware => ({ name: "loud", [point]: loud }));
    assertEquals(report.slice(0, 2), [
      '"loud" breaks the law that a middleware streams the text that it returns:',
      `- at ${point}, it streamed "That is all." and returned "THAT IS ALL." (in a plain run)`,
    ]);
    await testMiddleware((): Middleware => ({
      [point]: async ({ emit }: Scope, next: (change: Change) => Promise<RunResult>) => {
        const filter: Emit = (event) =>
          emit(event.type === "text.delta" ? { ...event, text: event.text.toUpperCase() } : event);
        return await loud(undefined, () => next({ emit: filter }));
      },
    }));
  });
}

Deno.test("testMiddleware() finds state of the module, which all agents share", async () => {
  let asked = 0;
  const report = await reportOf((): Middleware => ({
    name: "shared",
    approval: async (_, next) => ++asked > 4 ? deny("Enough.") : await next(),
  }));
  assertEquals(report.slice(0, 1), ['"shared" breaks the law that a middleware keeps one run apart from another:']);
  assertEquals(/^- after runs of other agents, a run has .*deny policy Enough/.test(report[1] ?? ""), true, report[1]);
});

Deno.test("testMiddleware() finds a request that depends on Date, and none that depends on the clock of the run", async () => {
  const dated = (today: (ctx: Scope) => Date): () => Middleware => () => ({
    name: "dated",
    turn: (ctx, next) => next({ context: [...ctx.context, `It is ${today(ctx).getFullYear()}.`] }),
  });
  for (const today of [() => new Date(), () => new Date(Date.now())]) {
    const report = await reportOf(dated(today));
    assertEquals(report[0], '"dated" breaks the law that a middleware reads the time with ctx.run.now():');
    assertEquals(/^- a year later, a run has .*It is \d{4}\..* \(in several runs\)$/.test(report[1] ?? ""), true);
    assertEquals(report.length, 2);
  }
  const { Date: before } = globalThis;
  await testMiddleware(dated(({ run }) => new Date(run.now())));
  await testMiddleware(dated(({ run }) => new Date(run.startedAt)));
  await testMiddleware(dated(({ run }) => new Date(run.now())), { now: () => 0 });
  assertStrictEquals(globalThis.Date, before);
});

Deno.test("testMiddleware() sets the clock of its runs", async () => {
  const times = new Set<number>();
  const reading = (): Middleware => ({ tool: ({ run }, next) => (times.add(run.now()), next()) });
  await testMiddleware(reading, { now: () => 5 });
  assertEquals([...times], [5]);
  times.clear();
  await testMiddleware(reading);
  assertEquals(times.size, 1);
});
