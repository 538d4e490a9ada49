import {
  abortRun,
  cancelled,
  compacted,
  deny,
  type Event,
  pause,
  type Point,
  refused,
  reply,
  text,
  user,
} from "@jizai/jizai";
import { assertEquals, assertStrictEquals } from "@std/assert";
import { settled } from "../support/batch.ts";
import { type AnyHook, at, reach } from "../support/reach.ts";
import {} from "@jizai/jizai/trace";

/** The expectations for one point, in addition to those for all points. */
interface Held {
  /** Whether the core of the point logs. */
  readonly core: boolean;
  /** The expected result of an undisturbed run. */
  readonly passed: readonly string[];
  /** An answer without `next()`, and its expected results. */
  readonly answer: unknown;
  readonly answered: readonly string[];
  /** The expected results if a hook throws before `next()`, and after it. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** The changes that a hook may pass to the inner layers. */
  readonly change: Readonly<Record<string, unknown>>;
}

/** The points at which `next()` may be called again. */
const repeatable: readonly Point[] = ["model", "execute"];

const toolCalled = ["user Hi", "call work"];

const points: Readonly<Record<Point, Held>> = {
  session: {
    core: true,
    passed: ["done", "user Hi", "assistant Done."],
    answer: refused("No."),
    answered: ["cancelled"],
    before: ["failed"],
    after: ["failed", "user Hi", "assistant Done."],
    change: { settings: { instructions: "New." }, context: ["new"] },
  },
  input: {
    core: false,
    passed: ["done", "user Hi", "assistant Done."],
    answer: refused("No."),
    answered: ["cancelled"],
    before: ["failed"],
    after: ["failed"],
    change: { messages: [user("New")], context: ["Context."] },
  },
  prompt: {
    core: true,
    passed: ["done", "user Hi", "assistant Done."],
    answer: cancelled("No."),
    answered: ["cancelled"],
    before: ["failed"],
    after: ["failed", "user Hi", "assistant Done."],
    change: { prompt: user("New"), context: ["new"] },
  },
  turn: {
    core: true,
    passed: ["done", "user Hi", "assistant Done."],
    answer: { response: reply("Answered."), results: [] },
    answered: ["done", "user Hi", "assistant Answered."],
    before: ["failed", "user Hi"],
    after: ["failed", "user Hi", "assistant Done."],
    change: { context: ["new"], transcript: [user("Hi")] },
  },
  model: {
    core: true,
    passed: ["done", "user Hi", "assistant Done."],
    answer: reply("Answered."),
    answered: ["done", "user Hi", "assistant Answered."],
    before: ["failed", "user Hi"],
    after: ["failed", "user Hi", "assistant Done."],
    change: { request: { instructions: "New." } },
  },
  tool: {
    core: true,
    passed: ["done", ...toolCalled, "ok Worked.", "assistant Done."],
    answer: text("Answered."),
    answered: ["done", ...toolCalled, "ok Answered.", "assistant Done."],
    before: ["failed", ...toolCalled, "error Withheld: a hook failed."],
    after: ["failed", ...toolCalled, "error Withheld: a hook failed."],
    change: { input: { n: 2 }, name: "other" },
  },
  approval: {
    core: true,
    passed: ["done", ...toolCalled, "ok Worked.", "assistant Done."],
    answer: deny("No."),
    answered: ["done", ...toolCalled, "denied No.", "assistant Done."],
    before: ["done", ...toolCalled, "denied A guard failed.", "assistant Done."],
    after: ["done", ...toolCalled, "denied A guard failed.", "assistant Done."],
    change: {},
  },
  execute: {
    core: true,
    passed: ["done", ...toolCalled, "ok Worked.", "assistant Done."],
    answer: text("Answered."),
    answered: ["done", ...toolCalled, "ok Answered.", "assistant Done."],
    before: ["done", ...toolCalled, "error work failed.", "assistant Done."],
    after: ["done", ...toolCalled, "error work failed.", "assistant Done."],
    change: {},
  },
  stop: {
    core: false,
    passed: ["done", "user Hi", "assistant Done."],
    answer: pause("Really?"),
    answered: ["paused", "user Hi", "assistant Done."],
    before: ["failed", "user Hi", "assistant Done."],
    after: ["failed", "user Hi", "assistant Done."],
    change: {},
  },
  compact: {
    core: false,
    passed: ["done", "user Hi", "assistant Heard: user Hi"],
    answer: compacted([user("Less")]),
    answered: ["done", "user Less", "assistant Heard: user Less"],
    before: ["done", "user Hi", "assistant Heard: user Hi"],
    after: ["done", "user Hi", "assistant Heard: user Hi"],
    change: { transcript: [user("Masked")], instructions: "New." },
  },
  subagent: {
    core: true,
    passed: ["done", ...toolCalled, "ok Helped.", "assistant Done."],
    answer: refused("No."),
    answered: ["done", ...toolCalled, "error child did not finish: No.", "assistant Done."],
    before: ["done", ...toolCalled, "error work failed.", "assistant Done."],
    after: ["done", ...toolCalled, "error work failed.", "assistant Done."],
    change: { prompt: user("New"), settings: { instructions: "New." } },
  },
  error: {
    core: false,
    passed: ["done", ...toolCalled, "error work failed.", "assistant Done."],
    answer: abortRun(),
    answered: ["failed", ...toolCalled, "error work failed."],
    before: ["done", ...toolCalled, "error work failed.", "assistant Done."],
    after: ["done", ...toolCalled, "error work failed.", "assistant Done."],
    change: {},
  },
  abort: {
    core: false,
    passed: ["aborted", "user Hi", "assistant Do"],
    answer: undefined,
    answered: ["aborted", "user Hi"],
    before: ["aborted", "user Hi"],
    after: ["aborted", "user Hi", "assistant Do"],
    change: {},
  },
};

/** Logs when it is entered and left. */
function logged(point: Point, name: string, log: string[]) {
  return at(point, name, async (_, next) => {
    log.push(`${name} in`);
    try {
      const result = await next();
      log.push(`${name} out`);
      return result;
    } catch (error) {
      log.push(`${name} threw ${error instanceof Error ? error.message : error}`);
      throw error;
    }
  });
}

/** A hook that does not await a `next()` that fails. */
function notAwaiting(point: Point) {
  return at(point, "lazy", (_, next) => {
    next({ run: {} });
    return Promise.resolve(points[point].answer);
  });
}

for (const [point, held] of Object.entries(points) as [Point, Held][]) {
  const core = held.core ? ["core"] : [];

  Deno.test(`${point}: hooks enter from the outermost to the innermost, and leave in reverse`, async () => {
    const log: string[] = [];
    const { outcome } = await reach(point, [logged(point, "outer", log), logged(point, "inner", log)], { log });
    assertEquals(log, ["outer in", "inner in", ...core, "inner out", "outer out"]);
    assertEquals(outcome, held.passed);
  });

  Deno.test(`${point}: only the inner layers see a change`, async () => {
    const seen: Record<string, unknown>[] = [];
    const look = (name: string) =>
      at(point, name, (ctx, next) => {
        seen.push({ ...ctx });
        return next();
      });
    let change: Record<string, unknown> = {};
    const changer = at(point, "changer", async (ctx, next) => {
      change = { signal: AbortSignal.any([ctx.signal]), emit: (event: Event) => ctx.emit(event), ...held.change };
      const result = await next(change);
      seen.push({ ...ctx });
      return result;
    });
    await reach(point, [look("outer"), changer, look("inner")]);
    const [outer = {}, inner = {}, own = {}] = seen;
    assertEquals(own, outer);
    for (const [key, value] of Object.entries(change)) {
      const whole = key === "settings" || key === "request" ? { ...Object(outer[key]), ...Object(value) } : value;
      assertEquals(inner[key], whole);
    }
    assertEquals(Object.keys(inner), Object.keys(outer));
  });

  Deno.test(`${point}: an event filter receives only the events of the inner layers`, async () => {
    const send = (text: string): AnyHook => (ctx, next) => {
      ctx.emit({ type: "notice", text });
      return next();
    };
    const filter = at(point, "filter", async (ctx, next) => {
      const result = await next({
        emit: (event: Event) =>
          ctx.emit(event.type === "notice" ? { ...event, text: `filtered ${event.text}` } : event),
      });
      ctx.emit({ type: "notice", text: "own" });
      return result;
    });
    const { events } = await reach(point, [
      at(point, "outer", send("outer")),
      filter,
      at(point, "inner", send("inner")),
    ]);
    const notices = events.flatMap((event) => event.type === "notice" ? [event.text] : []);
    assertEquals(notices, ["outer", "filtered inner", "own"]);
  });

  Deno.test(`${point}: a change of a fixed key is refused with its name`, async () => {
    const refusals: string[] = [];
    const forger = at(point, "forger", async (_, next) => {
      await next({ run: {} }).catch((error: Error) => refusals.push(error.message));
      return held.answer;
    });
    const { outcome } = await reach(point, [forger]);
    const keys = ["signal", "emit", ...Object.keys(held.change)].join(", ");
    assertEquals(refusals, [`Cannot change "run" at ${point} in "forger": expected ${keys}`]);
    assertEquals(outcome, held.answered);
  });

  Deno.test(`${point}: a key that is undefined changes nothing`, async () => {
    const seen: unknown[] = [];
    const look = at(point, "look", (ctx, next) => {
      seen.push({ ...ctx });
      return next();
    });
    const nothing = Object.fromEntries(["signal", "emit", ...Object.keys(held.change)].map((key) => [key, undefined]));
    const { outcome } = await reach(point, [look, at(point, "empty", (_, next) => next(nothing)), look]);
    assertEquals(seen.length, 2);
    assertEquals(seen[0], seen[1]);
    assertEquals(outcome, held.passed);
  });

  Deno.test(`${point}: a hook that does not call next() answers instead of the inner layers`, async () => {
    const log: string[] = [];
    const answerer = at(point, "answerer", () => Promise.resolve(held.answer));
    const { outcome } = await reach(point, [logged(point, "outer", log), answerer, logged(point, "inner", log)], {
      log,
    });
    assertEquals(log, ["outer in", "outer out"]);
    assertEquals(outcome, held.answered);
  });

  Deno.test(`${point}: a hook that throws before next() unwinds the outer hooks`, async () => {
    const log: string[] = [];
    const thrower = at(point, "thrower", () => Promise.reject(new Error("boom")));
    const { outcome } = await reach(point, [logged(point, "outer", log), thrower, logged(point, "inner", log)], {
      log,
    });
    assertEquals(log, ["outer in", "outer threw boom"]);
    assertEquals(outcome, held.before);
  });

  Deno.test(`${point}: a hook that throws synchronously unwinds the outer hooks`, async () => {
    const log: string[] = [];
    const thrower = at(point, "thrower", () => {
      throw new Error("boom");
    });
    const { outcome } = await reach(point, [logged(point, "outer", log), thrower], { log });
    assertEquals(log, ["outer in", "outer threw boom"]);
    assertEquals(outcome, held.before);
  });

  Deno.test(`${point}: a hook that throws after next() unwinds the outer hooks`, async () => {
    const log: string[] = [];
    const thrower = at(point, "thrower", async (_, next) => {
      await next();
      throw new Error("boom");
    });
    const { outcome, errors } = await reach(
      point,
      [logged(point, "outer", log), thrower, logged(point, "inner", log)],
      { log },
    );
    assertEquals(log, ["outer in", "inner in", ...core, "inner out", "outer threw boom"]);
    assertEquals(outcome, held.after);
    const what = point === "error" ? ["Error: boom", "Error: broken"] : ["Error: boom"]; // the error hooks run for "broken"
    assertEquals(errors.map(String), what);
  });

  Deno.test(`${point}: a second next() ${repeatable.includes(point) ? "starts clean" : "is refused"}`, async () => {
    const log: string[] = [];
    const signals: unknown[] = [];
    const twice = at(point, "twice", async (ctx, next) => {
      await next({ signal: AbortSignal.any([ctx.signal]) });
      signals.push(ctx.signal);
      return await next();
    });
    const inner = at(point, "inner", (ctx, next) => {
      signals.push(ctx.signal);
      return next();
    });
    const { outcome } = await reach(point, [logged(point, "outer", log), twice, inner], { log });
    if (repeatable.includes(point)) {
      assertEquals(log, ["outer in", "core", "core", "outer out"]);
      assertStrictEquals(signals[1], signals[2]);
      assertEquals(outcome, held.passed);
    } else {
      const hint = point === "tool" ? ": retry at execute" : "";
      assertEquals(log, ["outer in", ...core, `outer threw Cannot call next() twice at ${point} in "twice"${hint}`]);
      assertEquals(outcome, held.after);
    }
  });

  Deno.test(`${point}: a second next() before the first has settled is refused`, async () => {
    const log: string[] = [];
    const hasty = at(point, "hasty", async (_, next) => {
      const [first] = await Promise.all([next(), next()]);
      return first;
    });
    await reach(point, [logged(point, "outer", log), hasty], { log: [] });
    assertEquals(log, [
      "outer in",
      `outer threw Cannot call next() again before the first call has settled at ${point} in "hasty"`,
    ]);
  });

  Deno.test(`${point}: a hook that does not await next() is named in the error`, async () => {
    const log: string[] = [];
    const lazy = at(point, "lazy", (_, next) => {
      next();
      return Promise.resolve(held.answer);
    });
    await reach(point, [logged(point, "outer", log), lazy], { log: [] });
    assertEquals(log, ["outer in", `outer threw Cannot leave ${point}: "lazy" did not await next()`]);
  });

  Deno.test(`${point}: a hook that does not await a failing next() is named in the error`, async () => {
    const log: string[] = [];
    await reach(point, [logged(point, "outer", log), notAwaiting(point)], { log: [] });
    assertEquals(log, ["outer in", `outer threw Cannot leave ${point}: "lazy" did not await next()`]);
  });

  Deno.test(`${point}: next() after the hook has returned is refused`, async () => {
    const late: string[] = [];
    let call = () => Promise.resolve<unknown>(undefined);
    const quick = at(point, "quick", (_, next) => {
      call = next;
      return Promise.resolve(held.answer);
    });
    const { outcome } = await reach(point, [quick]);
    await call().catch((error: Error) => late.push(error.message));
    assertEquals(late, [`Cannot call next() after it had returned at ${point} in "quick"`]);
    assertEquals(outcome, held.answered);
  });

  if (point !== "abort") {
    Deno.test(`${point}: a hook that returns nothing is named in the error`, async () => {
      const log: string[] = [];
      const empty = at(point, "empty", async (_, next) => {
        await next();
      });
      const { outcome } = await reach(point, [logged(point, "outer", log), empty], { log: [] });
      const complaint = "returned nothing; return the result of next(), or an answer";
      assertEquals(log, ["outer in", `outer threw Cannot leave ${point}: "empty" ${complaint}`]);
      assertEquals(outcome, held.after);
    });

    Deno.test(`${point}: a run stopped inside aborts its signal, and its cleanup runs once`, async () => {
      const log: string[] = [];
      const stopper = at(point, "stopper", async (ctx, next) => {
        ctx.vars.stop("enough");
        log.push(`stopped ${ctx.signal.reason}`);
        ctx.signal.throwIfAborted();
        return await next();
      });
      const cleanup = at("abort", "cleanup", async (ctx, next) => {
        log.push(`cleanup ${ctx.reason} ${ctx.signal.aborted}`);
        await next();
      });
      const { result, events } = await reach(point, [cleanup, stopper], { log });
      assertEquals(log, ["stopped AbortError: enough", "cleanup enough false"]);
      assertEquals([result.status, result.reason], ["aborted", "enough"]);
      assertEquals(events.at(-1)?.type, "run.aborted");
    });

    Deno.test(`${point}: a run stopped inside stays stopped, whatever the hook returns`, async () => {
      const stopper = at(point, "stopper", async (ctx, next) => {
        ctx.vars.stop("enough");
        // the answer of a session hook would be the result, so it continues
        return point === "session" ? await next() : held.answer;
      });
      const { result } = await reach(point, [stopper]);
      assertEquals([result.status, result.reason], ["aborted", "enough"]);
    });
  }
}

Deno.test("model: every attempt is counted", async () => {
  const attempts: unknown[] = [];
  const twice = (name: string) =>
    at("model", name, async (ctx, next) => {
      attempts.push(`${name} ${ctx.attempt}`);
      await next();
      return await next();
    });
  await reach("model", [twice("outer"), twice("inner")]);
  assertEquals(attempts, ["outer 1", "inner 1", "inner 3"]);
});

Deno.test("a middleware without a name is named by its index", async () => {
  const refusals: string[] = [];
  const { name: _, ...nameless } = at("turn", "", async (_, next) => {
    await next({ run: {} }).catch((error: Error) => refusals.push(error.message));
    return await next();
  });
  const { errors } = await reach("turn", [at("turn", "first", (_, next) => next()), nameless]);
  assertEquals(refusals, [`Cannot change "run" at turn in "use[1]": expected signal, emit, context, transcript`]);
  assertEquals(errors.map(String), [`TypeError: Cannot call next() twice at turn in "use[1]"`]);
});

Deno.test("a trace does not change the error of a hook that does not await next()", async () => {
  for (const point of Object.keys(points) as Point[]) {
    const log: string[] = [];
    await reach(point, [logged(point, "outer", log), notAwaiting(point)], { log: [], traces: true });
    assertEquals(log, ["outer in", `outer threw Cannot leave ${point}: "lazy" did not await next()`]);
  }
});

Deno.test("work that a hook did not await is stopped when the run fails", async () => {
  const stopped = Promise.withResolvers<string>();
  const lazy = at("turn", "lazy", (_, next) => {
    next();
    return Promise.resolve(points.turn.answer);
  });
  const slow = at("model", "slow", async (ctx, next) => {
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    stopped.resolve(String(ctx.signal.reason));
    return await next();
  });
  const { outcome, errors } = await reach("turn", [lazy, slow]);
  assertEquals(outcome, ["failed", "user Hi"]);
  assertEquals(errors.map(String), [`TypeError: Cannot leave turn: "lazy" did not await next()`]);
  assertEquals(await stopped.promise, "AbortError: failure");
});

/** A hook that does not await its turn, and a hook that holds the batch until it is released. */
function unawaited() {
  const held = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const lazy = at("turn", "lazy", async (_, next) => {
    next();
    await entered.promise;
    return points.turn.answer;
  });
  const slow = at("tool", "slow", async (_, next) => {
    entered.resolve();
    await held.promise;
    return await next();
  });
  return { lazy, slow, letGo: held.resolve };
}

Deno.test("a batch that a hook did not await does not run once the run has failed", async () => {
  const log: string[] = [];
  const { lazy, slow, letGo } = unawaited();
  const parked = at("tool", "parked", async (_, next) => {
    try {
      return await next();
    } finally {
      log.push("unwound");
    }
  });
  const { outcome } = await reach("tool", [lazy, slow, parked], { log });
  assertEquals(outcome, ["failed", ...toolCalled, "aborted Stopped before it was done."]);
  letGo();
  await settled();
  assertEquals(log, ["unwound"]);
});

Deno.test("a batch that a hook did not await is added once, however long the cleanup takes", async () => {
  const { lazy, slow, letGo } = unawaited();
  const cleanup = at("abort", "cleanup", async (_, next) => {
    letGo();
    await settled();
    await next();
  });
  const { outcome } = await reach("tool", [cleanup, lazy, slow]);
  assertEquals(outcome, ["failed", ...toolCalled, "aborted Stopped before it was done."]);
});

const statuses = "done, limit, cancelled, aborted, failed";
for (
  const [point, key, expected] of [
    ["session", "status", statuses],
    ["prompt", "status", "done, limit, cancelled"],
    ["stop", "type", "finish, continue, pause"],
  ] as const
) {
  for (const given of ["Hello!", true, null, { text: "Hello!" }, text("Hello!"), { [key]: "paused" }]) {
    Deno.test(`${point}: a hook that returns ${JSON.stringify(given)} is named in the error`, async () => {
      const wrong = at(point, "wrong", async (_, next) => {
        await next();
        return given;
      });
      const { result } = await reach(point, [wrong], { log: [] });
      const problem = `returned a value without a valid "${key}": expected ${expected}`;
      assertEquals([result.status, String(result.error)], [
        "failed",
        `TypeError: Cannot leave ${point}: "wrong" ${problem}`,
      ]);
    });
  }
}

for (const point of ["session", "prompt"] as const) {
  Deno.test(`${point}: a hook that returns an answer without a text is named in the error`, async () => {
    const wrong = at(point, "wrong", () => Promise.resolve({ status: "done" }));
    const { result } = await reach(point, [wrong]);
    const complaint = `TypeError: Cannot leave ${point}: "wrong" returned a value without a valid "text"`;
    assertEquals([result.status, String(result.error)], ["failed", complaint]);
  });
}

for (
  const [point, key, status, expected] of [
    ["turn", "response", "failed", ""],
    ["model", "parts", "failed", ""],
    ["compact", "type", "done", ": expected compacted, declined"],
    ["subagent", "status", "done", `: expected ${statuses}`],
  ] as const
) {
  for (const given of ["Hello!", true, null, { text: "Hello!" }]) {
    Deno.test(`${point}: a hook that returns ${JSON.stringify(given)} is named in the error of the operator`, async () => {
      const wrong = at(point, "wrong", () => Promise.resolve(given));
      const { result, errors } = await reach(point, [wrong]);
      const problem = `returned a value without a valid "${key}"${expected}`;
      const complaint = `TypeError: Cannot leave ${point}: "wrong" ${problem}`;
      assertEquals([result.status, errors.map(String)], [status, [complaint]]);
    });
  }
}
