import { assertEquals, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { advanceUntilSettled } from "../../support/fake_time.ts";
import { shell, warnings } from "../../support/hooked.ts";
import { caught, hook, type Loose, type LooseHook, mod, ran, reports, throwing } from "../../support/modded.ts";

const passing: LooseHook = (_$, e, next) => next(e);

Deno.test("a mod's deny is what the model reads, and the run goes on", async () => {
  const log: string[] = [];
  const { lines, result } = await ran([hook("tool.call", () => ({ deny: "No commands." }))], {
    tools: [shell({ log })],
  });
  assertEquals(log, []);
  assertEquals(result.status, "done");
  assertEquals(lines, ["call Bash", "denied No commands.", "assistant Done."]);
});

Deno.test("a hook that throws before next() is skipped, and reported by mod, event and reason", async () => {
  const seen: string[] = [];
  const inner = hook("tool.call", (_$, e, next) => {
    seen.push(e.command);
    return next(e);
  }, { name: "inner" });
  const outcome = await ran([hook("tool.call", throwing()), inner]);
  assertEquals(seen, ["ls"]);
  assertEquals(outcome.lines, ["call Bash", "ok ran ls", "assistant Done."]);
  assertEquals(warnings(outcome.events), ['The mod "guard" failed at tool.call.']);
  assertEquals(reports(outcome), ['The mod "guard" failed at tool.call: broken']);
});

Deno.test("the result of next() stands after a hook throws, and the tool ran once", async () => {
  const log: string[] = [];
  const late = hook("tool.call", async (_$, e, next) => {
    await next(e);
    throw new Error("late");
  });
  const outcome = await ran([late], { tools: [shell({ log })] });
  assertEquals(log, ["ls"]);
  assertEquals(outcome.lines, ["call Bash", "ok ran ls", "assistant Done."]);
  assertEquals(reports(outcome), ['The mod "guard" failed at tool.call: late']);
});

Deno.test("a hook that throws while next() is pending does not run the tool twice", async () => {
  const log: string[] = [];
  const hasty = hook("tool.call", (_$, e, next) => {
    next(e);
    throw new Error("hasty");
  });
  const { lines } = await ran([hasty], { tools: [shell({ log })] });
  assertEquals(log, ["ls"]);
  assertEquals(lines, ["call Bash", "ok ran ls", "assistant Done."]);
});

for (
  const [name, answer, problem] of [
    ["nothing", undefined, "it returned nothing"],
    ["a text", "no", "it returned no object"],
    ["null", null, "it returned no object"],
    ["a list", [], "it returned no object"],
    ["an empty object", {}, 'it returned a wrong answer: its "result" is missing'],
    ["a deny that is no text", { deny: 5 }, 'it returned a wrong answer: its "deny" is not valid'],
    [
      "a context that is no list of texts",
      { result: "x", context: "y" },
      'it returned a wrong answer: its "context" is not valid',
    ],
    ["a function", { result: () => {} }, "expected plain data, got a function"],
  ] as const
) {
  Deno.test(`a hook that returns ${name} counts as failed`, async () => {
    const outcome = await ran([hook("tool.call", () => answer)]);
    assertEquals(outcome.lines, ["call Bash", "ok ran ls", "assistant Done."]);
    assertEquals(reports(outcome), [`The mod "guard" failed at tool.call: ${problem}`]);
  });
}

Deno.test("the result of next() stands after a wrong answer", async () => {
  const log: string[] = [];
  const { lines } = await ran([
    hook("tool.call", async (_$, e, next) => {
      await next(e);
    }),
  ], { tools: [shell({ log })] });
  assertEquals([log, lines[1]], [["ls"], "ok ran ls"]);
});

Deno.test("a .catch handler whose hook has not called next() may deny", async () => {
  const log: string[] = [];
  const called: unknown[] = [];
  const { lines } = await ran([
    caught("tool.call", throwing(), (_$, e, next) => {
      called.push(next.called, next.error, e.command);
      return { deny: "It failed." };
    }),
  ], { tools: [shell({ log })] });
  assertEquals(log, []);
  assertEquals(lines[1], "denied It failed.");
  assertEquals(called, [false, { kind: "throw", message: "broken", budget: 1_000 }, "ls"]);
});

Deno.test("next() of a .catch handler replays the result of the hook's next(), and ignores its argument", async () => {
  const log: string[] = [];
  const { lines } = await ran([
    caught("tool.call", async (_$, e, next) => {
      await next({ ...e, command: "first" });
      throw new Error("late");
    }, (_$, e, next) => next({ ...e, command: "second" })),
  ], { tools: [shell({ log })] });
  assertEquals(log, ["first"]);
  assertEquals(lines[1], "ok ran first");
});

Deno.test("next() of a .catch handler runs the rest once if the hook has not called it", async () => {
  const log: string[] = [];
  const { lines } = await ran([
    caught("tool.call", throwing(), async (_$, e, next) => {
      await next({ ...e, command: "second" });
      return await next({ ...e, command: "third" });
    }),
  ], { tools: [shell({ log })] });
  assertEquals(log, ["second"]);
  assertEquals(lines[1], "ok ran second");
});

for (
  const [name, handler] of [
    ["returns nothing", () => undefined],
    ["throws", throwing("again")],
    ["returns a wrong answer", () => ({ deny: true })],
  ] as const
) {
  Deno.test(`a .catch handler that ${name} counts as none`, async () => {
    const { lines } = await ran([caught("tool.call", throwing(), handler)]);
    assertEquals(lines[1], "ok ran ls");
  });
}

Deno.test("a .catch handler that takes more than a second counts as none", async () => {
  using time = new FakeTime();
  const stuck = caught("tool.call", throwing(), () => new Promise(() => {}));
  const outcome = await advanceUntilSettled(time, ran([stuck]));
  assertEquals(outcome.lines[1], "ok ran ls");
  assertEquals(reports(outcome)[1], 'The mod "guard" failed at tool.call: it took more than 1000 ms of its own time');
});

Deno.test("a hook is skipped after ten seconds of its own time", async () => {
  using time = new FakeTime();
  const aborted: unknown[] = [];
  const stuck = hook(
    "tool.call",
    (_$, _e, next) =>
      new Promise(() => next.signal.addEventListener("abort", () => aborted.push(next.signal.reason.message))),
  );
  const outcome = await advanceUntilSettled(time, ran([stuck]));
  assertEquals(outcome.lines[1], "ok ran ls");
  assertEquals(warnings(outcome.events), [
    'The mod "guard" failed at tool.call: it took more than 10000 ms of its own time.',
  ]);
  assertEquals(aborted, ["it took more than 10000 ms of its own time"]);
});

Deno.test("a late hook's .catch handler reads that it was a timeout", async () => {
  using time = new FakeTime();
  const errors: unknown[] = [];
  const stuck = caught("tool.call", () => new Promise(() => {}), (_$, _e, next) => {
    errors.push(next.error, next.budget.ms);
    return { deny: "late" };
  });
  const { lines } = await advanceUntilSettled(time, ran([stuck]));
  assertEquals(lines[1], "denied late");
  assertEquals(errors, [{ kind: "timeout", message: undefined, budget: 1_000 }, 1_000]);
});

Deno.test("a minute in next() costs a hook nothing of its budget", async () => {
  using time = new FakeTime();
  const left: number[] = [];
  const slow = shell({ execute: () => new Promise((resolve) => setTimeout(() => resolve("slow"), 60_000)) });
  const patient = hook("tool.call", async (_$, e, next) => {
    const result = await next(e);
    left.push(next.budget.remainingMs);
    return result;
  });
  const { lines } = await advanceUntilSettled(time, ran([patient], { tools: [slow] }));
  assertEquals([lines[1], left], ["ok slow", [10_000]]);
});

Deno.test("a call of $ stops the clock, and $.clock.sleep() does not", async () => {
  using time = new FakeTime();
  const slow = hook("env.get", ($, _e, next) => $.clock.sleep(6_000).then(() => next(_e)), { name: "slow" });
  const asking = hook("tool.call", async ($, e, next) => {
    await $.env.get("A");
    await $.env.get("A");
    return next(e);
  });
  const outcome = await advanceUntilSettled(time, ran([slow, asking]));
  assertEquals([outcome.lines[1], reports(outcome)], ["ok ran ls", []]);
  const sleeping = hook("tool.call", async ($, e, next) => {
    await $.clock.sleep(11_000);
    return next(e);
  });
  const late = await advanceUntilSettled(time, ran([sleeping]));
  assertEquals(reports(late), ['The mod "guard" failed at tool.call: it took more than 10000 ms of its own time']);
});

Deno.test("the outermost hook sees the event first and the result last", async () => {
  const log: string[] = [];
  const logging = (name: string) =>
    hook("tool.call", async (_$, e, next) => {
      log.push(`${name} ${e.command}`);
      const result = await next({ ...e, command: `${e.command} ${name}` });
      log.push(`${name} ${result.text}`);
      return { result: `${result.text} ${name}` };
    }, { name });
  const { lines } = await ran([logging("outer"), logging("inner")]);
  assertEquals(log, ["outer ls", "inner ls outer", "inner ran ls outer inner", "outer undefined"]);
  assertEquals(
    lines[1],
    "ok ran ls outer inner inner outer".replace("ran ls outer inner inner outer", "undefined outer"),
  );
});

Deno.test("the fields of an event are frozen to every depth", async () => {
  const errors: string[] = [];
  const writing = hook("tool.call", (_$, e, next) => {
    for (const write of [() => e.command = "x", () => e.added = 1, () => delete e.tool]) {
      try {
        write();
      } catch (error) {
        errors.push((error as Error).name);
      }
    }
    return next(e);
  });
  const { lines } = await ran([writing]);
  assertEquals(errors, ["TypeError", "TypeError", "TypeError"]);
  assertEquals(lines[1], "ok ran ls");
});

Deno.test("next() is frozen, and rejects without an argument", async () => {
  const seen: unknown[] = [];
  const empty = hook("tool.call", async (_$, e, next) => {
    seen.push(Object.isFrozen(next), next.event, next.origin, next.is("tool.*", e), next.is("!tool.call", e));
    seen.push(next(e) instanceof Promise);
    await assertRejects(
      () => next(),
      TypeError,
      'Cannot call next() at tool.call in "guard": expected the fields of the event',
    );
    return { result: "x" };
  });
  const { lines } = await ran([empty]);
  assertEquals(seen, [true, "tool.call", { plugin: "engine", tier: "core" }, true, false, true]);
  assertEquals(lines[1], "ok x");
});

Deno.test("a changed pinned field fails the hook, and one that was left out is put back", async () => {
  const seen: Loose[] = [];
  const inner = hook("tool.call", (_$, e, next) => {
    seen.push([e.tool, e.tool_use_id]);
    return next(e);
  }, { name: "inner" });
  const outcome = await ran([hook("tool.call", (_$, e, next) => next({ ...e, tool: "Other" })), inner]);
  assertEquals(reports(outcome), [
    'The mod "guard" failed at tool.call: Cannot call next() at tool.call in "guard": "tool" cannot be changed',
  ]);
  const { lines } = await ran([hook("tool.call", (_$, { command }, next) => next({ command })), inner]);
  assertEquals(lines[1], "ok ran ls");
  assertEquals(seen, [["Bash", "a"], ["Bash", "a"]]);
});

Deno.test("a second next() at tool.call rejects, and the first result is kept", async () => {
  const log: string[] = [];
  const again = hook("tool.call", async (_$, e, next) => {
    await next(e);
    return await next({ ...e, command: "again" });
  });
  const outcome = await ran([again], { tools: [shell({ log })] });
  assertEquals([log, outcome.lines[1], outcome.result.status], [["ls"], "ok ran ls", "done"]);
  const caught = hook("tool.call", async (_$, e, next) => {
    const first = await next(e);
    await assertRejects(() => next(e), TypeError, "retry at execute");
    return first;
  });
  assertEquals((await ran([caught])).lines[1], "ok ran ls");
});

Deno.test("an answer while next() is pending aborts the tool beneath", async () => {
  const aborted: boolean[] = [];
  const slow = shell({ execute: () => "ran" });
  const waiting = {
    ...slow,
    execute: (_input: never, { signal }: { signal: AbortSignal }) =>
      new Promise<string>((resolve) =>
        signal.addEventListener("abort", () => {
          aborted.push(true);
          resolve("aborted");
        })
      ),
  };
  const hasty = hook("tool.call", async ($, e, next) => {
    next(e);
    await $.clock.sleep(5);
    return { result: "mine" };
  });
  const { lines } = await ran([hasty], { tools: [waiting as never] });
  assertEquals([aborted, lines[1]], [[true], "ok mine"]);
});

Deno.test("next.trace lists what settled beneath, nearest first", async () => {
  const traces: Loose[] = [];
  const outer = hook("tool.call", async (_$, e, next) => {
    traces.push(next.trace.length);
    const result = await next(e);
    traces.push(
      next.trace.map(({ plugin, tier, outcome, index, event }: Loose) => [index, plugin, tier, event, outcome]),
    );
    traces.push(Object.isFrozen(next.trace), next.trace[0].received.command, next.trace[0].returned.text);
    return result;
  }, { name: "outer" });
  const failing = hook("tool.call", throwing(), { name: "failing" });
  const passed = hook("tool.call", async (_$, e, next) => await next(e), { name: "passed" });
  const kept = hook("tool.call", async (_$, e, next) => {
    await next(e);
    throw new Error("late");
  }, { name: "kept" });
  await ran([outer, failing, passed, kept]);
  assertEquals(traces, [
    0,
    [
      [1, "failing", "user", "tool.call", "skipped"],
      [2, "passed", "user", "tool.call", "passed"],
      [3, "kept", "user", "tool.call", "kept"],
      [4, "engine", "core", "tool.call", "returned"],
    ],
    true,
    "ls",
    "ran ls",
  ]);
});

Deno.test("next.to() skips tiers beneath for mods of the operator, and rejects for others", async () => {
  const log: string[] = [];
  const traces: Loose[] = [];
  const logging = (name: string, tier: "user" | "append" | "builtin") =>
    hook("tool.call", (_$, e, next) => {
      log.push(name);
      return next(e);
    }, { name, tier });
  const first = hook("tool.call", async (_$, e, next) => {
    const result = await next.to(e, "append");
    traces.push(next.trace.map(({ plugin, outcome, reason }: Loose) => [plugin, outcome, reason]));
    return result;
  }, { name: "first", tier: "prepend" });
  const all = [logging("user", "user"), logging("append", "append"), logging("builtin", "builtin")];
  await ran([...all, first]);
  assertEquals(log, ["append", "builtin"]);
  assertEquals(traces, [[
    ["user", "skipped", "bypassed by first"],
    ["append", "passed", undefined],
    ["builtin", "passed", undefined],
    ["engine", "returned", undefined],
  ]]);
  const outcome = await ran([hook("tool.call", (_$, e, next) => next.to(e, "core"))]);
  assertEquals(reports(outcome), [
    'The mod "guard" failed at tool.call: Cannot call next.to() in "guard": only mods of the tiers prepend and append may skip a tier',
  ]);
});

Deno.test("hooks run by tier, by the list, by dependencies, and by the order of on()", async () => {
  const log: string[] = [];
  const logging = (name: string, more: object = {}) =>
    mod((on) => {
      for (const at of [1, 2]) {
        on("tool.call", { tool: at === 1 ? "Bash" : /Bash/ }, (_$, e, next) => {
          log.push(`${name}${at}`);
          return next(e);
        });
      }
    }, { name, ...more });
  await ran([
    logging("append", { tier: "append" }),
    logging("base"),
    logging("other"),
    logging("user", { dependencies: ["base", "absent"] }),
    logging("builtin", { tier: "builtin" }),
    logging("prepend", { tier: "prepend" }),
  ]);
  const order = ["prepend", "user", "base", "other", "append", "builtin"];
  assertEquals(log, order.flatMap((name) => [`${name}1`, `${name}2`]));
});

Deno.test("with failure: closed, a failed guard refuses, with and without an answer of next()", async () => {
  const log: string[] = [];
  const closed = { failure: "closed", tools: [shell({ log })] } as const;
  assertEquals(
    (await ran([hook("tool.call", throwing())], closed)).lines[1],
    'denied The mod "guard" failed at tool.call.',
  );
  assertEquals(log, []);
  const late = hook("tool.call", async (_$, e, next) => {
    await next(e);
  });
  assertEquals((await ran([late], closed)).lines[1], 'denied The mod "guard" failed at tool.call.');
  assertEquals(
    (await ran([hook("tool.check", throwing())], closed)).lines[1],
    'denied The mod "guard" failed at tool.check.',
  );
  const dropped = await ran([hook("prompt.submit", () => ({ drop: 1 }))], closed);
  assertEquals([dropped.result.status, dropped.result.reason], [
    "cancelled",
    'The mod "guard" failed at prompt.submit.',
  ]);
  const handled = await ran([caught("tool.call", throwing(), passing)], closed);
  assertEquals(handled.lines[1], "ok ran ls");
});

Deno.test("with failure: closed, a handler that fails and a hook that is late refuse", async () => {
  using time = new FakeTime();
  const closed = { failure: "closed" } as const;
  for (const handler of [throwing("again"), () => undefined, () => ({ deny: 1 })]) {
    const { lines } = await advanceUntilSettled(time, ran([caught("tool.call", throwing(), handler)], closed));
    assertEquals(lines[1], 'denied The mod "guard" failed at tool.call.');
  }
  const late = await advanceUntilSettled(time, ran([hook("*", () => new Promise(() => {}))], closed));
  assertEquals([late.result.status, late.result.reason], ["cancelled", 'The mod "guard" failed at prompt.submit.']);
});
