import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import * as z from "zod";
import {
  agent,
  type AnyTool,
  denied,
  type Middleware,
  only,
  type Point,
  type Scope,
  state,
  tool,
  when,
} from "@jizai/jizai";
import type { ToolHooks } from "@jizai/jizai/engine";
import { scripted, type ScriptedStep } from "@jizai/jizai/model/scripted";
import { onlyIf } from "../../src/core/conditions.ts";
import { eachHook, points } from "../../src/core/each_hook.ts";
import { compose, type Hook, type Named } from "../../src/core/onion.ts";
import { lines } from "../support/transcript_lines.ts";
import { explain } from "@jizai/jizai/explain";
import { trace } from "@jizai/jizai/trace";

function named(name: string): AnyTool {
  return tool({ name, description: name, input: z.object({}), execute: () => name });
}

const names = ["edit", "multi_edit", "edit_all", "read"];
const tools = names.map(named);

/** Returns the results of a batch of one call to each tool. */
async function results(...use: Middleware[]) {
  const calls: ScriptedStep = { calls: names.map((name) => [name, {}] as const) };
  const { messages } = await agent({ model: scripted(calls, "Done."), tools, use }).run("Hi").result;
  return lines(messages).slice(2, -1);
}

const block: ToolHooks = { tool: () => Promise.resolve(denied("no")) };

Deno.test("only() accepts a whole name, a pattern, or a tool", async () => {
  const kept = ["ok edit", "ok multi_edit", "ok edit_all", "ok read"];
  assertEquals(await results(only("edit", block)), ["denied no", ...kept.slice(1)]);
  assertEquals(await results(only("edit|read", block)), ["denied no", "ok multi_edit", "ok edit_all", "denied no"]);
  assertEquals(await results(only(".*edit", block)), ["denied no", "denied no", ...kept.slice(2)]);
  assertEquals(await results(only("edit.*", block)), ["denied no", "ok multi_edit", "denied no", "ok read"]);
  assertEquals(await results(only("dit", block)), kept);
  const [, , all] = tools;
  assertEquals(all && await results(only(all, block)), [...kept.slice(0, 2), "denied no", "ok read"]);
});

Deno.test("only() matches at every point of a call, by the name under which the call runs", async () => {
  const seen: string[] = [];
  const rename: Middleware = { tool: (ctx, next) => ctx.name === "edit" ? next({ name: "read" }) : next() };
  await results(
    rename,
    only("read", {
      tool: (ctx, next) => {
        seen.push(`tool ${ctx.call.name} ${ctx.name}`);
        return next();
      },
      approval: (ctx, next) => {
        seen.push(`approval ${ctx.call.name} ${ctx.name}`);
        return next();
      },
      execute: (ctx, next) => {
        seen.push(`execute ${ctx.call.name} ${ctx.tool.name}`);
        return next();
      },
    }),
  );
  assertEquals(seen, [
    "tool edit read",
    "approval edit read",
    "tool read read",
    "approval read read",
    "execute edit read",
    "execute read read",
  ]);
});

Deno.test("only() also matches calls of unknown tools", async () => {
  const model = scripted({ calls: [["ghost", {}], ["read", {}]] }, "Done.");
  const { messages } = await agent({ model, tools, use: [only("ghost", block)] }).run("Hi").result;
  assertEquals(lines(messages).slice(2, 4), ["denied no", "ok read"]);
});

Deno.test("only() rejects points without a tool", () => {
  const hook = (_: Scope, next: () => Promise<never>) => next();
  for (const point of points) {
    const middleware: Middleware = { name: "odd", [point]: hook };
    if (["tool", "approval", "execute"].includes(point)) only("x", middleware);
    else {
      assertThrows(
        () => only("x", middleware),
        TypeError,
        `Cannot limit "odd" to tools: its hook at ${point} concerns no tool`,
      );
    }
  }
  assertThrows(() => only("(", block), SyntaxError, "Invalid regular expression");
});

Deno.test("when() calls its predicate for each dispatch, and passes if it is false", async () => {
  const asked: boolean[] = [];
  const odd = state("odd", () => 0);
  const use = when((scope) => {
    const holds = odd.update(scope, (n) => n + 1) % 2 === 1;
    asked.push(holds);
    return holds;
  }, block);
  assertEquals(await results(use), ["denied no", "ok multi_edit", "denied no", "ok read"]);
  assertEquals(asked, [true, false, true, false]);
  assertEquals(await results(use), ["denied no", "ok multi_edit", "denied no", "ok read"]);
});

Deno.test("when() with a predicate that throws fails as the hook would", async () => {
  const broken = when(() => {
    throw new Error("broken");
  }, { turn: (_, next) => next() });
  const { status, error } = await agent({ model: scripted("Hi!"), use: [broken] }).run("Hi").result;
  assertEquals([status, error instanceof Error && error.message], ["failed", "broken"]);
});

Deno.test("only() and when() keep the name, order, tools and inheritance", () => {
  const order = { after: ["a"], requires: ["b"] };
  const whole: Middleware = { ...block, ...order, name: "whole", inherit: false, tools: [named("mine")] };
  const { name, after, requires, inherit, tools } = whole;
  for (const chosen of [only("x", whole), when(() => false, whole), when(() => true, only("x", whole))]) {
    const { tool, ...rest } = chosen;
    assertEquals([rest, typeof tool], [{ name, after, requires, inherit, tools }, "function"]);
  }
  assertEquals(Object.keys(when(() => true, { prompt: (_, next) => next() })), ["prompt"]);
});

/** A middleware that is a class with private state. */
class Counting implements Middleware {
  readonly name = "counting";
  readonly seen: string[] = [];

  tool: Middleware["tool"] & object = (_, next) => next();

  async turn(...[ctx, next]: Parameters<Middleware["turn"] & object>) {
    this.seen.push(`turn ${ctx.index}`);
    return await next();
  }

  async approval(...[ctx, next]: Parameters<Middleware["approval"] & object>) {
    this.seen.push(`approval ${ctx.name}`);
    return await next();
  }
}

Deno.test("a hook is called as a method of its middleware", async () => {
  const plain = new Counting();
  await results(plain);
  const all = ["turn 1", ...names.map((name) => `approval ${name}`), "turn 2"];
  assertEquals(plain.seen, all);
  const chosen = new Counting();
  await results(when(() => true, chosen));
  assertEquals(chosen.seen, all);
  class Guard {
    readonly seen: string[] = [];
    async approval(...[ctx, next]: Parameters<Middleware["approval"] & object>) {
      this.seen.push(ctx.name);
      return await next();
    }
  }
  const guard = new Guard();
  await results(only("read", guard));
  assertEquals(guard.seen, ["read"]);
});

Deno.test("eachHook() wraps every hook, and passes its point", () => {
  const hook = (_: Scope, next: () => Promise<never>) => next();
  const all = Object.fromEntries(points.map((point) => [point, hook]));
  const wrapped: Point[] = [];
  const made = eachHook({ ...all, name: "all" }, (hook, point) => {
    wrapped.push(point);
    return hook;
  });
  assertEquals(wrapped, [...points]);
  assertEquals(Object.keys(made), ["name", ...points]);
  const { length } = explain(agent({ model: scripted(), use: [made] })).match(/all → core/g) ?? [];
  assertEquals(length, points.length);
});

/** Runs hooks around a core that logs. Returns the result and the log. */
async function through(
  law: { readonly late?: boolean },
  ...hooks: readonly ((log: string[]) => Hook<string, string, string>)[]
): Promise<readonly string[]> {
  const log: string[] = [];
  const named = hooks.map((make, index): Named<string, string, string> => ({ name: `h${index}`, hook: make(log) }));
  const onion = compose<string, string, string>(named);
  const outcome = await onion("a", undefined, {
    point: "tool",
    ...law,
    change: (_, change) => change,
    async core(ctx) {
      log.push(`core ${ctx}`);
      await undefined;
      return `(${ctx})`;
    },
  }).catch(String);
  return [...log, outcome];
}

/** Adds a mark to the change and to the result. */
const marks = (mark: string) => (log: string[]): Hook<string, string, string> => async (ctx, next) => {
  log.push(`${mark} in ${ctx}`);
  return `${await next(ctx + mark)}${mark}`;
};
for (const law of [{}, { late: true }]) {
  const core = law.late ? "a core that reviews" : "a core";

  Deno.test(`onlyIf() passes if its predicate is false, around ${core}`, async () => {
    const chosen = (holds: boolean) => (log: string[]) => onlyIf(marks("x")(log), () => holds);
    assertEquals(await through(law, chosen(false)), ["core a", "(a)"]);
    assertEquals(await through(law, chosen(true)), ["x in a", "core ax", "(ax)x"]);
    assertEquals(await through(law, chosen(false), marks("y"), chosen(true), chosen(false)), [
      "y in a",
      "x in ay",
      "core ayx",
      "(ayx)xy",
    ]);
  });

  Deno.test(`onlyIf() fails as its hook does if its predicate throws, around ${core}`, async () => {
    const blind = new Error("blind");
    const predicates = [() => {
      throw blind;
    }, () => Promise.reject(blind)];
    for (const holds of predicates) {
      assertEquals(await through(law, marks("y"), () => onlyIf(marks("x")([]), holds)), ["y in a", "Error: blind"]);
    }
  });
}

Deno.test("onlyIf() works as a plain function too", async () => {
  const next = (change = "a") => Promise.resolve(`(${change})`);
  assertEquals(await onlyIf(marks("x")([]), () => true)("a", next), "(ax)x");
  assertEquals(await onlyIf(marks("x")([]), () => false)("a", next), "(a)");
});

Deno.test("hooks that do nothing appear in a trace as hooks that pass", async () => {
  const idle: Middleware = {
    name: "idle",
    tool: onlyIf((_, next) => next(), () => false),
    execute: (_, next) => next(),
  };
  const events: string[] = [];
  await agent({
    model: scripted({ calls: [["read", {}]] }, "Done."),
    tools,
    use: [idle],
    trace,
    observe: (event) => {
      if (event.type === "hook.acted") events.push(`${event.middleware} ${event.point} ${event.did}`);
    },
  }).run("Hi").result;
  assertEquals(events, ["idle execute passed", "idle tool passed"]);
});

Deno.test("a hook that returns the promise of next() adds no promise", async () => {
  let promise: Promise<string> | undefined;
  const pass: Hook<string, string, string> = (_, next) => promise = next();
  const onion = compose([{ name: "pass", hook: pass }]);
  const outcome = onion("a", undefined, {
    point: "tool",
    late: true,
    change: (_, change) => change,
    core: (ctx) => Promise.resolve(ctx),
  });
  assertStrictEquals(outcome, promise);
  assertEquals(await outcome, "a");
});
