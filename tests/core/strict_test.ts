import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import * as z from "zod";
import { agent, type AgentOptions, type Middleware, type Schema, tool, type ToolResult } from "@jizai/jizai";
import { trace } from "@jizai/jizai/trace";
import { scripted } from "@jizai/jizai/model/scripted";

const look = tool({
  name: "look",
  description: "Looks",
  input: z.object({ at: z.array(z.string()) }),
  execute({ at }) {
    at.sort();
    return at.join();
  },
});

function looking(hooks: Middleware, options: Partial<AgentOptions<unknown, Schema<unknown, string>>> = {}) {
  return agent({
    model: scripted({ calls: [["look", { at: ["b", "a"] }]] }, "Done."),
    tools: [look],
    use: [hooks],
    strict: true,
    ...options,
  });
}

/** Writes to a readonly value, as code without types may do. */
function write(target: object, key: string, value: unknown): void {
  (target as Record<string, unknown>)[key] = value; // the test is about writes that types forbid
}

/** The message of the error with which a run fails. */
async function failure(hooks: Middleware, options?: Parameters<typeof looking>[1]): Promise<string> {
  const { status, error } = await looking(hooks, options).run({ prompt: "Go", onError: () => {} }).result;
  assertEquals(status, "failed");
  assertInstanceOf(error, TypeError);
  return error.message;
}

const writes: readonly (readonly [string, Middleware])[] = [
  ["session", { session: (ctx, next) => (write(ctx, "context", []), next()) }],
  ["input", { input: (ctx, next) => (write(ctx.messages[0] ?? {}, "parts", []), next()) }],
  ["prompt", { prompt: (ctx, next) => (write(ctx.transcript, "0", {}), next()) }],
  ["turn", { turn: (ctx, next) => (write(ctx.run.limits, "turns", 1), next()) }],
  ["model", { model: (ctx, next) => (write(ctx.request, "instructions", "More"), next()) }],
  ["tool", { tool: (ctx, next) => (write(ctx.input as object, "at", []), next()) }],
  ["stop", { stop: (ctx, next) => (write(ctx.message.parts, "length", 0), next()) }],
];

for (const [point, hooks] of writes) {
  Deno.test(`in strict mode, a write at ${point} throws and names the hook`, async () => {
    const message = await failure({ name: "writer", ...hooks });
    assert(message.startsWith(`Cannot change a value at ${point} in "writer": Cannot `), message);
    assert(message.endsWith("expected a change for next(), or a new value"), message);
  });
}

Deno.test("in strict mode, a write at approval or execute prevents the call and names the hook", async () => {
  const cases: readonly (readonly [string, Middleware])[] = [
    ["approval", { approval: (ctx, next) => (write(ctx.call, "name", "other"), next()) }],
    ["execute", { execute: (ctx, next) => (write(ctx, "input", {}), next()) }],
  ];
  for (const [point, hooks] of cases) {
    const errors: unknown[] = [];
    const run = looking({ name: "writer", ...hooks }).run({ prompt: "Go", onError: (error) => errors.push(error) });
    const { messages } = await run.result;
    const [error] = errors;
    assert(error instanceof TypeError && error.message.startsWith(`Cannot change a value at ${point} in "writer"`));
    const [, , results] = messages;
    assert(results?.role === "tool" && results.results.every(({ status }) => status !== "ok"));
  }
});

Deno.test("in strict mode, a write to a result or an event throws and names the hook", async () => {
  const results: Middleware = {
    name: "results",
    async tool(_ctx, next): Promise<ToolResult> {
      const result = await next();
      write(result, "parts", []);
      return result;
    },
  };
  assert((await failure(results)).startsWith('Cannot change a value at tool in "results"'));
  const events: Middleware = {
    name: "events",
    prompt: (ctx, next) => next({ emit: (event) => (write(event, "more", 1), ctx.emit(event)) }),
  };
  assert((await failure(events)).startsWith('Cannot change a value at prompt in "events"'));
});

Deno.test("in strict mode, the error names the hook that wrote, not the hooks around it", async () => {
  const outer: Middleware = { name: "outer", prompt: (_ctx, next) => next(), turn: async (_ctx, next) => await next() };
  const [, [, writer]] = [writes[0], writes[4] ?? ["", {}]];
  const { error } = await agent({
    model: scripted("Hi"),
    use: [outer, { name: "writer", ...writer }],
    strict: true,
  }).run({ prompt: "Go", onError: () => {} }).result;
  assert(error instanceof TypeError && error.message.startsWith('Cannot change a value at model in "writer"'));
});

Deno.test("strict mode does not freeze vars, tools, models, parsed inputs or objects of a class", async () => {
  class Box {
    count = 0;
  }
  const vars = { user: { name: "Ada" }, box: new Box() };
  const model = { ...scripted({ calls: [["look", { at: ["b", "a"] }]] }, "Done."), extra: { n: 0 } };
  const own = { ...look, extra: { n: 0 } };
  const seen: boolean[] = [];
  const watch: Middleware = {
    name: "watch",
    session: (ctx, next) => (seen.push(Object.isFrozen(ctx), Object.isFrozen(ctx.settings.tools)), next()),
    turn: (_ctx, next) => next(),
    execute: (_ctx, next) => next(),
  };
  const assistant = agent({ model, tools: [own], use: [watch], strict: true });
  const { messages } = await assistant.run({ prompt: "Go", vars }).result;
  vars.user.name = "Bob";
  vars.box.count = 1;
  own.extra.n = 1;
  model.extra.n = 1;
  assertEquals([seen, vars, own.extra.n, model.extra.n], [
    [true, false],
    { user: { name: "Bob" }, box: vars.box },
    1,
    1,
  ]);
  const [, , results] = messages;
  assert(results?.role === "tool");
  assertEquals(results.results.map(({ parts }) => parts), [[{ type: "text", text: "a,b" }]]);
});

Deno.test("strict mode works beside trace", async () => {
  const hooks: Middleware = { name: "calm", prompt: (_ctx, next) => next() };
  const events = await Array.fromAsync(looking(hooks, { trace }).run("Go").events);
  assertEquals(events.flatMap((event) => event.type === "hook.acted" ? [event.middleware] : []), ["calm"]);
  const [, prompt] = writes[2] ?? ["", {}];
  assert((await failure({ name: "writer", ...prompt }, { trace })).includes('at prompt in "writer"'));
});

Deno.test("strict mode is off by default, and importing the testing kit turns it on", async () => {
  const writer: Middleware = { name: "writer", model: (ctx, next) => (write(ctx, "more", 1), next()) };
  const options = { model: scripted("Hi", "Hi", "Hi"), use: [writer] };
  const run = async (strict?: boolean) => {
    const assistant = agent({ ...options, ...(strict !== undefined && { strict }) });
    return (await assistant.run({ prompt: "Go", onError: () => {} }).result).status;
  };
  const key = Symbol.for("jizai.strict");
  const before = Reflect.get(globalThis, key);
  try {
    Reflect.deleteProperty(globalThis, key);
    assertEquals(await run(), "done");
    Reflect.set(globalThis, key, before);
    await import("@jizai/jizai/testing");
    if (before === undefined) assertEquals(Reflect.get(globalThis, key), true);
    Reflect.set(globalThis, key, true);
    assertEquals([await run(), await run(false)], ["failed", "done"]);
  } finally {
    Reflect.set(globalThis, key, before);
  }
});

Deno.test("strict mode leaves a result that cannot be frozen as it is, and nothing rejects unhandled", async () => {
  let deep: unknown = "end";
  for (let level = 0; level < 20_000; level++) deep = [deep];
  const throwing = {
    get at(): string {
      throw new Error("The getter failed");
    },
  };
  for (const input of [throwing, { at: deep }]) {
    const statuses: string[] = [];
    const outer: Middleware = {
      name: "outer",
      async tool(_, next) {
        const result = await next();
        statuses.push(result.status);
        return result;
      },
    };
    const changes: Middleware = { name: "changes", tool: (_, next) => next({ input }) };
    const { status } = await looking(outer, { use: [outer, changes], strict: true }).run({ prompt: "Hi", onError() {} })
      .result;
    assertEquals([status, statuses], ["done", ["error"]]);
  }
});
