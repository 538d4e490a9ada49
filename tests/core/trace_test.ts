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
import { asTool } from "@jizai/jizai/subagents";
import { trace } from "@jizai/jizai/trace";
import { assertEquals } from "@std/assert";
import * as z from "zod";
import { eventsOfRun } from "../support/run_events.ts";

const look = tool({
  name: "look",
  description: "Looks",
  input: z.object({ at: z.string() }),
  idempotent: true,
  execute: ({ at }) => `Seen ${at}`,
});

type HookActed = Extract<Event, { type: "hook.acted" }>;
type Acted = Omit<HookActed, "type" | "ms" | "changes">;

/** Returns the acts of every hook of a run that calls `look` once. */
async function acts(...use: Middleware[]): Promise<Acted[]> {
  const model = scripted({ calls: [["look", { at: "x" }]] }, "Done.");
  const events = await eventsOfRun(agent({ model, tools: [look], use, trace }).run("Hi"));
  return events.flatMap((event) => {
    if (event.type !== "hook.acted") return [];
    const { type: _, ms, changes: __, ...acted } = event;
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

/** Returns the changes that the hooks of a run made, as `point key: before -> after`. */
async function changes(run: Parameters<typeof eventsOfRun>[0]): Promise<readonly string[]> {
  const events = await eventsOfRun(run);
  const json = (value: unknown) => value === undefined ? "nothing" : JSON.stringify(value);
  return events.flatMap((event) =>
    event.type !== "hook.acted"
      ? []
      : (event.changes ?? []).map(({ key, before, after, same }) =>
        `${event.point} ${key}: ${json(before)} -> ${json(after)}${same ? `, ${same} the same` : ""}`
      )
  );
}

const message = (text: string) => ({ role: "user", parts: [{ type: "text", text }] } as const);

Deno.test("a trace shows each value that a hook changed, before and after", async () => {
  const use: Middleware = {
    name: "all",
    session: (ctx, next) =>
      next({ settings: { instructions: "Be brief.", limits: ctx.settings.limits }, context: ["It is noon."] }),
    input: (ctx, next) => next(ctx.source === "prompt" ? { messages: [message("Hello")] } : {}),
    prompt: (_, next) => next({ prompt: message("Hello!"), context: [] }),
    turn: (ctx, next) =>
      next({
        context: [...ctx.context, "Look twice."],
        ...(ctx.index > 1 && { transcript: ctx.transcript.slice(1) }),
      }),
    async model(ctx, next) {
      const response = await next({ request: { options: { temperature: 0 }, model: ctx.request.model } });
      return ctx.turn === 1 ? response : reply("Finished.");
    },
    tool: async (_, next) => ({ ...await next({ input: { at: "y" } }), ...text("Masked") }),
    approval: () => Promise.resolve({ type: "allow", input: { at: "z" } }),
    stop: async (_, next) => await next(),
  };
  const model = scripted({ calls: [["look", { at: "x" }]] }, "Done.");
  const allowed = 'approval result: nothing -> {"type":"allow","input":{"at":"z"}}';
  const result = (text: string) =>
    JSON.stringify({ status: "ok", parts: [{ type: "text", text }], input: { at: "z" } });
  const response = (text: string) => JSON.stringify({ parts: [{ type: "text", text }], finish: "stop" });
  const noon = JSON.stringify({ role: "user", from: "session", parts: [{ type: "text", text: "It is noon." }] });
  assertEquals(await changes(agent({ model, tools: [look], use: [use], trace }).run("Hi")), [
    `input messages: ${JSON.stringify([message("Hi")])} -> ${JSON.stringify([message("Hello")])}`,
    'model request.options: {} -> {"temperature":0}',
    allowed,
    'tool input: {"at":"x"} -> {"at":"y"}',
    allowed,
    allowed,
    'tool input: {"at":"z"} -> {"at":"y"}',
    `tool result: ${result("Seen z")} -> ${result("Masked")}`,
    'turn context: [] -> ["Look twice."]',
    'model request.options: {} -> {"temperature":0}',
    `model result: ${response("Done.")} -> ${response("Finished.")}`,
    'turn context: [] -> ["Look twice."]',
    `turn transcript: [${noon}] -> [], 3 the same`,
    `prompt prompt: ${JSON.stringify(message("Hello"))} -> ${JSON.stringify(message("Hello!"))}`,
    'session settings.instructions: "" -> "Be brief."',
    'session context: [] -> ["It is noon."]',
  ]);
});

Deno.test("a trace shows the changes at subagent and compact, and no model, tool or error as an object", async () => {
  const child = agent({ name: "child", model: scripted("It rains.") });
  const use: Middleware = {
    name: "all",
    session: (ctx, next) => next({ settings: { tools: ctx.settings.tools.slice(0, 1), model: ctx.settings.model } }),
    subagent: (ctx, next) =>
      next({ prompt: message(`${textOf(ctx.prompt)} Now!`), settings: { instructions: "Hurry." } }),
    execute: (_, next) => next().catch((error) => ({ ...text("No."), error })),
    compact: (_, next) => next({ instructions: "Keep names." }).then(() => ({ type: "declined", reason: "Later." })),
  };
  const fails = tool({
    name: "fails",
    description: "Fails",
    input: z.object({}),
    execute: () => Promise.reject(new Error("secret")),
  });
  const model = scripted({ calls: [["child", { prompt: "Weather?" }]] }, "Done.");
  assertEquals(await changes(agent({ model, tools: [asTool(child), fails], use: [use], trace }).run("Hi")), [
    `subagent prompt: ${JSON.stringify(message("Weather?"))} -> ${JSON.stringify(message("Weather? Now!"))}`,
    'subagent settings.instructions: nothing -> "Hurry."',
    'session settings.tools: [{"name":"fails","description":"Fails"}] -> [], 1 the same',
  ]);
  const failing = scripted({ calls: [["fails", {}]] }, "Done.");
  assertEquals(await changes(agent({ model: failing, tools: [fails], use: [use], trace }).run("Hi")), [
    'execute result: nothing -> {"status":"ok","parts":[{"type":"text","text":"No."}]}',
  ]);
});

Deno.test("a trace cuts long values around what differs, and leaves out values that are not JSON", async () => {
  const long = "x".repeat(30_000);
  const show = async (change: object, input: object = { at: `${long}old${long}`, list: Array(80).fill(0) }) => {
    const use: Middleware = { name: "m", tool: (_, next) => next({ input: change }).catch(() => text("Failed.")) };
    const model = scripted({ calls: [["look", input]] }, "Done.");
    const events = await eventsOfRun(agent({ model, tools: [look], use: [use], trace }).run("Hi"));
    return events.flatMap((event) => event.type === "hook.acted" ? event.changes ?? [] : []).filter(({ key }) =>
      key === "input"
    );
  };
  const shown = (word: string) => `[29800 characters] …${"x".repeat(200)}${word}${"x".repeat(200)}… [29800 characters]`;
  const [input] = await show({ at: `${long}new${long}`, list: Array(80).fill(1) });
  assertEquals(input?.before, { at: shown("old"), list: [...Array(50).fill(0), "[30 more]"] });
  assertEquals(input?.after, { at: shown("new"), list: [...Array(50).fill(1), "[30 more]"] });
  const [whole] = await show({ at: "y".repeat(3_000) }, {});
  assertEquals(whole, { key: "input", before: {}, after: { at: `${"y".repeat(2_600)}… [400 characters]` } });
  const unreadable = (key: string) =>
    Object.defineProperty({}, key, {
      enumerable: true,
      get() {
        throw new Error("unreadable");
      },
    });
  for (
    const careless of [
      { model: (_, next) => next({ request: unreadable("options") }) },
      { prompt: async (_, next) => Object.assign(unreadable("reason"), await next()) },
    ] satisfies Middleware[]
  ) {
    const run = agent({ model: scripted("Hi."), use: [careless], trace }).run({ prompt: "Hi", onError: () => {} });
    const acted = (await eventsOfRun(run)).filter((event) => event.type === "hook.acted");
    assertEquals(acted.map(({ changes }) => changes), [undefined]);
  }
  const circle: { self?: object } = {};
  circle.self = circle;
  assertEquals(await show(circle, { at: "x" }), [{ key: "input", before: { at: "x" }, after: "[not JSON]" }]);
});

Deno.test("a trace masks what hooks changed, also outside of redact(), before it is cut, and in a run that continues", async () => {
  const secret = `sk-${"0123456789".repeat(4)}`;
  const outer: Middleware = {
    name: "outer",
    session: (ctx, next) => next({ settings: { instructions: `${ctx.settings.instructions} Use ${secret}.` } }),
    input: (ctx, next) => next({ messages: [user(`${ctx.messages.map((each) => textOf(each as never))}`)] }),
  };
  const inner: Middleware = {
    name: "inner",
    turn: (ctx, next) =>
      next({ context: [...ctx.context, `${"x".repeat(1_990)}${secret}`, secret.slice(0, 20), secret.slice(20)] }),
    tool: async (_, next) => ({ ...await next({ input: { at: secret } }), ...text(secret) }),
  };
  const asking = { ...look, ask: true };
  const model = scripted({ calls: [["look", { at: "x" }]] }, "Done.");
  const assistant = agent({ model, tools: [asking], use: [outer, redact({ secrets: [secret] }), inner], trace });
  const first = await eventsOfRun(assistant.run({ prompt: `The key is ${secret}`, session: "s" }));
  const answers = [{ callId: "call_1", type: "approve", input: { at: `${secret}!` } }] as const;
  const second = await eventsOfRun(assistant.resume({ session: "s", answers }));
  const shown = [...first, ...second].filter(({ type }) => type === "hook.acted");
  assertEquals(
    shown.flatMap((event) => event.type === "hook.acted" ? event.changes?.map(({ key }) => key) ?? [] : []),
    [
      ...["messages", "request.instructions", "request.messages", "input"],
      ...["context", "result", "settings.instructions"],
      ...["messages", "input", "context", "result", "settings.instructions"],
    ],
  );
  for (const part of [secret, secret.slice(0, 20), secret.slice(20)]) {
    assertEquals([JSON.stringify(shown).includes(part), part], [false, part]);
  }
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
