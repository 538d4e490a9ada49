import {
  agent,
  denied,
  deny,
  type Event,
  type Middleware,
  ModelError,
  reply,
  text,
  textOf,
  tool,
  ToolError,
  user,
} from "@jizai/jizai";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { trace } from "@jizai/jizai/trace";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { eventsOfRun } from "../support/run_events.ts";

const look = tool({
  name: "look",
  description: "Looks",
  input: z.object({ at: z.string() }),
  execute: ({ at }) => `Seen ${at}`,
});

type Acted = Omit<Extract<Event, { type: "hook.acted" }>, "type" | "ms">;

/** Returns the acts of every hook of a run that calls `look` once. */
async function acts(...use: Middleware[]): Promise<Acted[]> {
  const model = scripted({ calls: [["look", { at: "x" }]] }, "Done.");
  const events = await eventsOfRun(agent({ model, tools: [look], use, trace }).run("Hi"));
  return events.flatMap((event) => {
    if (event.type !== "hook.acted") return [];
    const { type: _, ms, ...acted } = event;
    assertEquals(ms, 0); // asserted here, since it differs between runs
    return [acted];
  });
}

Deno.test("a trace says which hooks passed, changed or replaced, and the result", async () => {
  assertEquals(
    await acts(
      { name: "outer", tool: (_, next) => next() },
      { name: "input", tool: (_, next) => next({ input: { at: "y" } }) },
      { name: "output", tool: async (_, next) => ({ ...await next(), status: "error" }) },
      { tool: (ctx, next) => next({ signal: ctx.signal, name: "look" }) },
    ),
    [
      { middleware: "use[3]", did: ["changed"], changed: ["signal", "name"], decided: "ok" },
      { middleware: "output", did: ["replaced"], decided: "error" },
      { middleware: "input", did: ["changed"], changed: ["input"], decided: "error" },
      { middleware: "outer", did: ["passed"], decided: "error" },
    ].map(({ middleware, ...rest }) => ({ middleware, point: "tool", turn: 1, call: "call_1", ...rest }) as Acted),
  );
});

Deno.test("a trace says which hook denied", async () => {
  const call = { turn: 1, call: "call_1" };
  assertEquals(
    await acts(
      { name: "outer", approval: (_, next) => next(), tool: (_, next) => next() },
      { name: "guard", approval: () => Promise.resolve(deny("no")) },
    ),
    [
      { middleware: "guard", point: "approval", ...call, did: ["answered"], decided: "deny" },
      { middleware: "outer", point: "approval", ...call, did: ["passed"], decided: "deny" },
      { middleware: "outer", point: "tool", ...call, did: ["passed"], decided: "denied" },
    ],
  );
  assertEquals(await acts({ name: "block", tool: () => Promise.resolve(denied("no")) }), [
    { middleware: "block", point: "tool", ...call, did: ["answered"], decided: "denied" },
  ]);
});

Deno.test("a trace says which hook retried, and which threw", async () => {
  const call = { turn: 1, call: "call_1" };
  let failures = 0;
  assertEquals(
    await acts(
      { name: "retry", execute: (_, next) => next().catch(() => next()) },
      {
        name: "flaky",
        execute: (_, next) => failures++ > 0 ? next() : Promise.reject(new ToolError("flaky")),
      },
      {
        name: "sync",
        stop: () => {
          throw new Error("sync");
        },
      },
    ),
    [
      { middleware: "flaky", point: "execute", ...call, did: ["threw"] },
      { middleware: "flaky", point: "execute", ...call, did: ["passed"], decided: "ok" },
      { middleware: "retry", point: "execute", ...call, did: ["retried"], decided: "ok" },
      { middleware: "sync", point: "stop", did: ["threw"] },
    ],
  );
});

Deno.test("a trace contains the turn if there is one, and no undefined field", async () => {
  const pass = (_: unknown, next: () => Promise<never>) => next();
  const all = ["session", "prompt", "turn", "model", "tool", "approval", "execute", "stop"] as const;
  const use = { name: "all", ...Object.fromEntries(all.map((point) => [point, pass])) };
  const odd: Middleware = { name: "odd", prompt: (_, next) => next({ prompt: undefined } as object) };
  const acted = await acts(use, odd);
  assertEquals(
    acted.map(({ middleware, point, turn, call, decided, did }) => [middleware, point, turn, call, decided, ...did]),
    [
      ["all", "model", 1, undefined, undefined, "passed"],
      ["all", "approval", 1, "call_1", "allow", "passed"],
      ["all", "execute", 1, "call_1", "ok", "passed"],
      ["all", "tool", 1, "call_1", "ok", "passed"],
      ["all", "turn", 1, undefined, undefined, "passed"],
      ["all", "model", 2, undefined, undefined, "passed"],
      ["all", "turn", 2, undefined, undefined, "passed"],
      ["all", "stop", undefined, undefined, "finish", "passed"],
      ["odd", "prompt", undefined, undefined, "done", "passed"],
      ["all", "prompt", undefined, undefined, "done", "passed"],
      ["all", "session", undefined, undefined, "done", "passed"],
    ],
  );
});

Deno.test("a trace adds an event when a request is sent or a hook leaves, and changes nothing else", async () => {
  const use: Middleware[] = [
    { name: "cache", model: (ctx, next) => ctx.turn === 1 ? next() : Promise.resolve(reply("Mine.")) },
    { name: "mark", tool: async (_, next) => ({ ...text("Seen"), ...await next() }) },
  ];
  const play = async (traces: boolean) => {
    const model = scripted({ calls: [["look", { at: "x" }]] });
    return await eventsOfRun(agent({ model, tools: [look], use, ...(traces && { trace }) }).run("Hi"));
  };
  const [traced, plain] = [await play(true), await play(false)];
  assertEquals(traced.filter(({ type }) => type !== "hook.acted" && type !== "model.requested"), plain);
  const types = traced.map((event) => event.type === "hook.acted" ? `${event.middleware} ${event.did}` : event.type);
  assertEquals(types.slice(5), [
    "model.requested",
    "call.delta",
    "call.ready",
    "cache passed",
    "model.finished",
    "tool.started",
    "approval.decided",
    "mark replaced",
    "tool.finished",
    "turn.finished",
    "turn.started",
    "model.started",
    "cache answered",
    "model.finished",
    "turn.finished",
    "session.closed",
    "run.finished",
  ]);
});

Deno.test("a trace contains each request as it is sent, with the changes of the hooks and without the oldest messages of a long one", async () => {
  const use: Middleware = {
    name: "shape",
    turn: (ctx, next) => next({ context: [...ctx.context, "It is noon."] }),
    model: (_, next) => next({ request: { instructions: "Be brief." } }),
  };
  const model = scripted({ error: new ModelError("busy", { recoverable: true }) }, "Hello!");
  const again: Middleware = { name: "again", model: (_, next) => next().catch(() => next()) };
  const options = { model, tools: [look], use: [again, use], trace };
  const long = user("x".repeat(20_000));
  const events = await eventsOfRun(agent(options).run({ messages: [user("Old"), long, user("Hi")] }));
  const requests = events.flatMap((event) => event.type === "model.requested" ? [event] : []);
  assertEquals(
    requests.map(({ turn, attempt, instructions, messages, omitted, tools }) => [
      [turn, attempt, instructions, omitted],
      messages.map((message) => message.role === "tool" ? "" : textOf(message)),
      tools.map(({ name }) => name),
    ]),
    [1, 2].map((attempt) => [[1, attempt, "Be brief.", 2], ["Hi", "It is noon."], ["look"]]),
  );
});

Deno.test("a trace shows a request masked, as the model received it", async () => {
  const secret = "sk-0123456789";
  const use = [redact({ secrets: [secret] })];
  const assistant = agent({ model: scripted("Hello!"), instructions: `Use ${secret}.`, use, trace });
  const events = await eventsOfRun(assistant.run(`The key is ${secret}`));
  assertEquals([JSON.stringify(events).includes(secret), JSON.stringify(events).includes("Use [redacted].")], [
    false,
    true,
  ]);
});
