/**
 * Code of users that must or must not compile, without type arguments and casts.
 *
 * @module
 */
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import * as z from "zod";
import * as mini from "zod/mini";
import {
  agent,
  allow,
  type Answer,
  ask,
  continueWith,
  denied,
  type Middleware,
  only,
  type RunResult,
  type Scope,
  serve,
  state,
  text,
  tool,
  type ToolExecutionContext,
  type ToolResult,
  vars,
  when,
} from "@jizai/jizai";
import { scripted } from "@jizai/jizai/model/scripted";
import { type Context, Hono } from "hono";
import type { JwtVariables } from "hono/jwt";
import { lines } from "./support/transcript_lines.ts";
import { asTool } from "@jizai/jizai/subagents";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;

/** Compiles if `T` is true. */
function is<T extends true>(..._proof: T[]): void {}

interface User {
  readonly id: string;
}

const ada = { user: { id: "ada" } };
const weather = tool({
  name: "weather",
  description: "Current weather of a city",
  input: z.object({ city: z.string(), days: z.number().default(1) }),
  execute: ({ city, days }) => {
    is<Equal<typeof city, string>>();
    is<Equal<typeof days, number>>();
    return `Sunny in ${city} for ${days}`;
  },
});
const mine = tool({
  name: "mine",
  description: "Says who asks",
  input: z.object({}),
  execute: (_, { vars }: ToolExecutionContext<{ user: User }>) => vars.user.id,
});
const nothing: Middleware = { name: "nothing", tool: (_, next) => next() };
const needsUser: Middleware<{ user: User }> = {
  name: "needsUser",
  tool: (ctx, next) => ctx.vars.user.id === "ada" ? next() : Promise.resolve(denied("Only Ada.")),
};
const needsRequest: Middleware<{ request: string }> = {
  name: "needsRequest",
  tool: async (ctx, next) => {
    const result = await next();
    return { ...result, context: [ctx.vars.request] };
  },
};

const calling = () => scripted({ calls: [["weather", { city: "Kyoto" }], ["mine", {}]] }, "Done.");

/** Returns the results of the calls of a run. */
async function results(result: Promise<RunResult>) {
  return lines((await result).messages).slice(2, -1);
}

Deno.test("types infer from schemas of zod/mini as from those of Zod", async () => {
  const input = mini.object({ city: mini.string(), days: mini._default(mini.number(), 1) });
  const forecast = tool({
    name: "weather",
    description: "Current weather of a city",
    input,
    ask: ({ days }) => {
      is<Equal<typeof days, number>>();
      return days > 7;
    },
    execute: ({ city, days }) => {
      is<Equal<typeof city, string>>();
      // @ts-expect-error the input has no such field
      ({ city, days } as typeof input._zod.output).degrees;
      return `Sunny in ${city} for ${days}`;
    },
  });
  const model = scripted({ calls: [["weather", { city: "Kyoto" }]] }, '{"at":"2026-01-02"}');
  const output = mini.object({ at: mini.pipe(mini.string(), mini.transform((at: string) => new Date(at))) });
  const { messages, output: value } = await agent({ model, tools: [forecast], output }).run("Go").result;
  is<Equal<typeof value, { at: Date } | undefined>>();
  assertEquals([lines(messages)[2], value], ["ok Sunny in Kyoto for 1", { at: new Date("2026-01-02") }]);
});

Deno.test("an agent that needs no vars accepts none, or vars of every type", async () => {
  const assistant = agent({ model: scripted("1", "2", "3"), tools: [weather], use: [nothing] });
  is<Equal<Parameters<typeof assistant.run>[0], string>>();
  await assistant.run("Hi").result;
  await assistant.run({ prompt: "Hi" }).result;
  const { status } = await assistant.run({ prompt: "Hi", vars: { any: 1 } }).result;
  assertEquals(status, "done");
});

Deno.test("an agent requires the vars of its middleware", async () => {
  const assistant = agent({
    model: scripted({ calls: [["weather", { city: "Kyoto" }]] }, "Done."),
    tools: [weather],
    use: [nothing, needsUser, {
      name: "inline",
      tool(ctx, next) {
        is<Equal<typeof ctx.vars, { user: User }>>();
        is<Equal<typeof ctx.input, unknown>>();
        return next();
      },
    }],
  });
  assertEquals(await results(assistant.run({ prompt: "Hi", vars: ada }).result), ["ok Sunny in Kyoto for 1"]);
  const wrong = () => [
    // @ts-expect-error: vars are missing
    assistant.run({ prompt: "Hi" }),
    // @ts-expect-error: a text alone has no vars
    assistant.run("Hi"),
    // @ts-expect-error: these are not the vars it needs
    assistant.run({ prompt: "Hi", vars: { user: "ada" } }),
    // @ts-expect-error: vars are missing when it is resumed, too
    assistant.resume({ session: "s", answers: [] }),
  ];
  assertEquals(typeof wrong, "function");
  const { text } = await agent({
    model: ({ vars: { user } }) => scripted(user.id),
    instructions: ({ vars: { user } }) => user.id,
    use: [needsUser],
  }).run({ prompt: "Hi", vars: ada }).result;
  assertEquals(text, "ada");
});

Deno.test("an agent requires the vars of its tools", async () => {
  const assistant = agent({ model: calling(), tools: [weather, mine], use: [nothing] });
  const asked = assistant.run({ prompt: "Hi", vars: ada }).result;
  assertEquals(await results(asked), ["ok Sunny in Kyoto for 1", "ok ada"]);
  // @ts-expect-error: vars are missing
  const missing = () => assistant.run({ prompt: "Hi" });
  assertEquals(typeof missing, "function");
});

Deno.test("the vars option declares vars for all tools and middleware", async () => {
  const assistant = agent({
    vars: vars<{ user: User; request: string }>(),
    model: (scope) => {
      is<Equal<typeof scope.vars, { user: User; request: string }>>();
      return calling();
    },
    instructions: ({ vars }) => `You help ${vars.user.id}.`,
    tools: [weather, mine],
    use: [
      nothing,
      needsUser,
      needsRequest,
      when((scope: Scope<{ user: User }>) => scope.vars.user.id === "missing", nothing),
      when(({ run }) => run.used.turns > 5, needsUser),
      only(weather, {
        tool: (ctx, next) => {
          is<Equal<typeof ctx.input, { city: string; days: number }>>();
          return next({ input: { city: ctx.input.city.toUpperCase(), days: 2 } });
        },
        execute: (ctx, next) => {
          is<Equal<typeof ctx.input, { city: string; days: number }>>();
          return next();
        },
      }),
      only("weather|mine", needsUser),
      only(weather, needsUser),
      {
        name: "inline",
        async tool(ctx, next) {
          is<Equal<typeof ctx.vars, { user: User; request: string }>>();
          return await next();
        },
      },
    ],
  });
  const asked = assistant.run({ prompt: "Hi", vars: { ...ada, request: "r1" } }).result;
  assertEquals(await results(asked), ["ok Sunny in KYOTO for 2", "ok ada", "context r1r1"]);
});

Deno.test("vars that a middleware needs and the agent lacks are a type error", () => {
  // @ts-expect-error: the witness has no request
  agent({ vars: vars<{ user: User }>(), model: scripted(), use: [needsRequest] });
  // @ts-expect-error: the witness has no user
  agent({ vars: vars<{ request: string }>(), model: scripted(), tools: [mine] });
  // @ts-expect-error: two that need different vars need a witness
  agent({ model: scripted(), use: [needsUser, needsRequest] });
  const child = asTool(agent({ model: scripted(), tools: [mine] }), { name: "child", description: "Asks" });
  // @ts-expect-error: a child needs what its tools need
  agent({ vars: vars<{ request: string }>(), model: scripted(), tools: [child] });
  agent({ vars: vars<{ user: User; more: 1 }>(), model: scripted(), tools: [mine], use: [needsUser, nothing] });
});

Deno.test("the output has the type of its schema; without a schema there is no output", async () => {
  const output = z.object({ city: z.string(), days: z.string().transform(Number) });
  const { output: value } = await agent({ model: scripted('{"city":"Kyoto","days":"2"}'), output }).run("Hi").result;
  is<Equal<typeof value, { city: string; days: number } | undefined>>();
  assertEquals(value, { city: "Kyoto", days: 2 });
  const plain = await agent({ model: scripted("Hi!") }).run("Hi").result;
  assertEquals(plain.output, undefined);
});

Deno.test("a context is read-only", () => {
  const use: Middleware = {
    prompt: (ctx, next) => {
      // @ts-expect-error: a change travels through next()
      const own = () => ctx.prompt = { role: "user", parts: [] };
      // @ts-expect-error: nor is what it holds to be changed
      const deep = () => ctx.prompt.parts.push({ type: "text", text: "!" });
      // @ts-expect-error: ids least of all
      const id = () => ctx.run.id = "forged";
      is<Equal<[typeof own, typeof deep, typeof id]["length"], 3>>();
      return next();
    },
  };
  assertEquals(Object.keys(use), ["prompt"]);
});

Deno.test("next() accepts only allowed changes, and rejects others at run time", async () => {
  const use: Middleware = {
    tool: (_, next) => next({ input: {}, name: "other" }),
    // @ts-expect-error: the call is as the model made it
    prompt: (ctx, next) => next({ transcript: ctx.transcript }),
    // @ts-expect-error: vars can be changed at no point
    turn: (_, next) => next({ vars: {} }),
    // @ts-expect-error: what a guard sees is final
    approval: (_, next) => next({ input: {} }),
    // @ts-expect-error: a prompt is a message
    session: (_, next) => next({ context: "one" }),
  };
  const { prompt, turn } = use;
  const odd: Middleware = { name: "odd", ...(prompt && { prompt }) };
  const { error } = await agent({ model: scripted(), use: [odd] }).run("Hi").result;
  assertEquals(
    error instanceof TypeError && error.message,
    'Cannot change "transcript" at prompt in "odd": expected signal, emit, prompt, context',
  );
  assertEquals(typeof turn, "function");
});

Deno.test("a hook that returns nothing, or a wrong value, does not compile", () => {
  const use: Middleware = {
    // @ts-expect-error: what next() gave is not returned
    prompt: async (_, next) => {
      await next();
    },
    // @ts-expect-error: an approval is no result
    tool: () => Promise.resolve(allow()),
    // @ts-expect-error: a result is not an approval
    approval: () => Promise.resolve(text("yes")),
    // @ts-expect-error: a hook is asynchronous
    stop: () => continueWith("More."),
    error: (_, next) => next(),
    abort: async (_, next) => {
      await next();
    },
  };
  assertEquals(Object.keys(use).length, 6);
});

Deno.test("the options of a tool have the types of its input and its vars", async () => {
  const pay = tool({
    name: "pay",
    description: "Pays",
    input: z.object({ sum: z.coerce.number() }),
    ask: ({ sum }, { vars }: Scope<{ user: User }>) => sum > 5 || vars.user.id !== "ada",
    execute: ({ sum }, ctx: ToolExecutionContext<{ user: User }>) => {
      is<Equal<typeof sum, number>>();
      return { paid: sum, by: ctx.vars.user.id };
    },
  });
  const assistant = agent({ model: scripted({ calls: [["pay", { sum: "5" }]] }, "Done."), tools: [pay] });
  assertEquals(await results(assistant.run({ prompt: "Pay", vars: ada }).result), ['ok {"paid":5,"by":"ada"}']);
  const wrong = () =>
    tool({
      name: "wrong",
      description: "",
      input: z.object({ sum: z.number() }),
      // @ts-expect-error: the input is what the schema says
      execute: ({ total }) => total,
    });
  is<Equal<ReturnType<typeof wrong>["name"], string>>();
});

Deno.test("only() infers the input from a tool, not from a name, and rejects hooks without a call", () => {
  const chosen = [
    only(weather, { approval: (ctx) => Promise.resolve(ctx.input.city === "Kyoto" ? allow() : ask(ctx.input.city)) }),
    only("weather", {
      tool: (ctx, next) => {
        is<Equal<typeof ctx.input, unknown>>();
        return next();
      },
    }),
  ];
  assertEquals(chosen.map((middleware) => Object.keys(middleware)), [["approval"], ["tool"]]);
  const wrong = () => [
    // @ts-expect-error: a city is a text
    only(weather, { tool: (_, next) => next({ input: { city: 1, days: 1 } }) }),
    // @ts-expect-error: there is no such field
    only(weather, { tool: (ctx, next) => next({ input: ctx.input.town }) }),
  ];
  is<Equal<ReturnType<typeof wrong>["length"], number>>();
  const model: Middleware = { name: "m", model: (_, next) => next() };
  assertThrows(() => only(weather, model), TypeError, "its hook at model concerns no tool");
});

Deno.test("state has the type of its initial value", () => {
  const count = state("count", () => 0);
  const names = state("names", (): readonly string[] => []);
  const use: Middleware = {
    turn: (ctx, next) => {
      const n = count.update(ctx, (n) => n + 1);
      is<Equal<typeof n, number>>();
      names.set(ctx, [...names.get(ctx), "a"]);
      // @ts-expect-error: a count is a number
      const wrong = () => count.set(ctx, "one");
      is<Equal<ReturnType<typeof wrong>, void>>();
      return next();
    },
  };
  assertEquals(Object.keys(use), ["turn"]);
});

Deno.test("the result of next() has the type that the hook must return", async () => {
  const use: Middleware = {
    session: async (_, next) => {
      const result = await next();
      is<Equal<typeof result, RunResult>>();
      return { ...result, text: `${result.text}!` };
    },
    prompt: async (_, next) => {
      const answer = await next();
      is<Equal<typeof answer, Answer>>();
      return { ...answer, text: answer.text.toUpperCase() };
    },
    execute: async (_, next) => {
      const result = await next();
      is<Equal<typeof result, ToolResult>>();
      return result;
    },
  };
  assertEquals((await agent({ model: scripted("hello"), use: [use] }).run("Hi").result).text, "HELLO!");
});

Deno.test("a middleware factory infers the vars that it needs", async () => {
  function owner<V extends { readonly user: User }>(): Middleware<V> {
    return { name: "owner", prompt: async (ctx, next) => ({ ...await next(), text: ctx.vars.user.id }) };
  }
  const assistant = agent({
    vars: vars<{ user: User; request: string }>(),
    model: scripted("Hi!"),
    use: [owner(), nothing],
  });
  const { text } = await assistant.run({ prompt: "Hi", vars: { ...ada, request: "r" } }).result;
  assertEquals(text, "ada");
  await assertRejects(() =>
    assistant.start({ session: "none", answers: [], vars: { ...ada, request: "r" } }, {
      write() {},
      cork() {},
      uncork() {},
      full: undefined,
      close() {},
    }).ready
  );
});

Deno.test("serve() infers the vars of an agent, with their literal types, and requires them", () => {
  interface Guest {
    readonly user: User;
    readonly role: "member" | "guest";
  }
  const assistant = agent({ vars: vars<Guest>(), model: scripted() });
  serve(assistant, { vars: (c: Context<{ Variables: { user: User } }>) => ({ user: c.var.user, role: "guest" }) });
  serve(assistant, {
    vars: () => Promise.resolve({ ...ada, role: "guest" }),
    recoveryVars: () => ({ ...ada, role: "guest" }),
  });
  // @ts-expect-error: there is no such role
  serve(assistant, { vars: () => ({ ...ada, role: "boss" }) });
  // @ts-expect-error: the role is missing
  serve(assistant, { vars: () => ada });
  // @ts-expect-error: the vars are missing
  serve(assistant, {});
  // @ts-expect-error: the options are missing
  serve(assistant);
});

Deno.test("serve() types the context of a request: stated, inferred from one option, or as Hono declares it", () => {
  interface AppEnv {
    readonly Variables: { readonly usr: User };
    readonly Bindings: { readonly KEY: string };
  }
  const plain = agent({ model: scripted() });
  const needy = agent({ vars: vars<User>(), model: scripted() });
  serve<AppEnv>(plain, { owner: (c) => c.get("usr").id, vars: (c) => c.var.usr, session: (c) => c.env.KEY });
  serve<AppEnv, User>(needy, { owner: (c) => c.get("usr").id, vars: (c) => c.get("usr") });
  serve(needy, { vars: (c: Context<AppEnv>) => c.get("usr"), owner: (c) => c.get("usr").id });
  serve(plain, { owner: (c) => c.get("jwtPayload") as string });
  serve(needy, { vars: (c) => ({ id: c.env.KEY }), owner: (c) => c.req.header("x-user") });
  // @ts-expect-error: no middleware declares that variable
  serve(plain, { owner: (c) => c.get("usr").idd.nope });
  // @ts-expect-error: no middleware declares that variable
  serve(needy, { vars: (c) => ({ id: c.get("usr").idd.nope }) });
  // @ts-expect-error: the variable has no such field
  serve<AppEnv>(plain, { owner: (c) => c.get("usr").idd.nope });
  // @ts-expect-error: the variable has no such field
  serve<AppEnv>(plain, { onClientGone: (c) => c.var.usr.idd });
  // @ts-expect-error: the inferred environment holds for the other options
  serve(needy, { vars: (c: Context<AppEnv>) => c.get("usr"), owner: (c) => c.get("usr").idd });
  // @ts-expect-error: the vars are checked beside a stated environment
  serve<AppEnv, User>(needy, { vars: (c) => ({ id: c.env.KEY.length }) });
  // @ts-expect-error: a stated environment does not hide that the agent needs vars
  serve<AppEnv>(needy, { vars: (c) => c.get("usr") });
  const served = serve<{ Variables: JwtVariables }>(plain, { owner: (c) => c.get("jwtPayload").sub });
  new Hono<{ Variables: JwtVariables }>().route("/agent", served);
  new Hono<AppEnv>().route("/agent", serve(plain));
  is<Equal<typeof served extends Hono<{ Variables: JwtVariables }> ? true : false, true>>();
});
