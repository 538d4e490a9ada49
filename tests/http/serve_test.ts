import {
  agent,
  memory,
  type Middleware,
  type RequestVars,
  serve,
  type ServeOptions,
  type Store,
  tool,
  type ToolExecutionContext,
  vars,
} from "../../mod.ts";
import { aiSdkUi } from "@jizai/jizai/wire/ai_sdk";
import { scripted } from "../../src/model/scripted.ts";
import type { Journal } from "@jizai/jizai/session/durable";
import { assertEquals, assertThrows } from "@std/assert";
import { type Context, type Env, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import * as z from "zod";
import { captured } from "../support/console_errors.ts";
import { waiting } from "../support/halting.ts";
import { type App, eventsOf, first, piecesOf, post, refusalOf } from "../support/requests.ts";
import { withoutSchemas } from "../support/without_schemas.ts";

interface User {
  readonly name: string;
}

const whoami = tool({
  name: "whoami",
  description: "Who is asking",
  input: z.object({}),
  execute: (_input, { vars }: ToolExecutionContext<{ user: User }>) => vars.user.name,
});

const remove = tool({
  name: "remove",
  description: "Removes a file",
  input: z.object({ path: z.string() }),
  ask: true,
  execute: ({ path }) => `Removed ${path}`,
});

/** The app at the root, and mounted in another app. */
function everywhere(make: () => App & Hono): readonly (readonly [prefix: string, app: App])[] {
  return [["", make()], ["/assistant", new Hono().route("/assistant", make())]];
}

Deno.test("GET /health answers 200", async () => {
  for (const [prefix, app] of everywhere(() => serve(agent({ model: scripted() })))) {
    const response = await app.request(`${prefix}/health`);
    assertEquals([response.status, await response.json()], [200, { status: "ok" }]);
    assertEquals((await app.request(`${prefix}/health`, { method: "HEAD" })).status, 200);
  }
});

Deno.test("serve() answers 405 with the allowed method, at the root and mounted", async () => {
  const paths = [
    ["/runs", "POST", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"]],
    ["/runs/r1/stop", "POST", ["GET", "DELETE"]],
    ["/sessions/s1/answers", "POST", ["GET", "PUT"]],
    ["/health", "GET, HEAD", ["POST", "DELETE"]],
  ] as const;
  for (const [prefix, app] of everywhere(() => serve(agent({ model: scripted() })))) {
    for (const [path, allow, methods] of paths) {
      for (const method of methods) {
        const response = await app.request(prefix + path, { method });
        assertEquals([response.status, response.headers.get("allow")], [405, allow]);
        const error = { code: "method", message: `Cannot ${method} here: only ${allow}` };
        if (method !== "HEAD") assertEquals(await response.json(), { error });
      }
    }
  }
});

Deno.test("serve() answers 404 for unknown paths, and leaves them to the app in which it is mounted", async () => {
  const app = serve(agent({ model: scripted() }));
  for (const path of ["/", "/runs/r1/events", "/sessions", "/runs/r1/stop/now", "/Health"]) {
    const error = { code: "unknown", message: "Cannot serve this path: there is none" };
    assertEquals(await refusalOf(app.request(path)), [404, error]);
  }
  const outer = new Hono().route("/", app).get("/sessions", (c) => c.text("mine"));
  assertEquals(await (await outer.request("/sessions")).text(), "mine");
});

Deno.test("serve() in an app with middleware reads vars from its context and keeps its headers", async () => {
  type AppEnv = { Variables: { user: User } };
  const assistant = agent({ model: scripted({ calls: [["whoami", {}]] }, "Hello!"), tools: [whoami] });
  const app = new Hono<AppEnv>();
  app.use("/assistant/*", async (c, next) => {
    const name = c.req.header("authorization");
    if (!name) throw new HTTPException(401, { message: "Who are you?" });
    c.set("user", { name });
    c.header("x-request-id", "r1");
    await next();
    c.res.headers.set("access-control-allow-origin", "*");
  });
  app.route("/assistant", serve(assistant, { vars: (c: Context<AppEnv>) => ({ user: c.var.user }) }));

  const refused = await post(app, "/assistant/runs", { prompt: "Hi" });
  assertEquals([refused.status, await refused.text()], [401, "Who are you?"]);

  const response = await app.request("/assistant/runs", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Ada" },
    body: JSON.stringify({ prompt: "Hi" }),
  });
  const { headers } = response;
  assertEquals(
    ["x-request-id", "access-control-allow-origin", "content-type", "cache-control"].map((name) => headers.get(name)),
    ["r1", "*", "text/event-stream", "no-store, no-transform"],
  );
  assertEquals(first("tool.finished", await eventsOf(response)).result.parts, [{ type: "text", text: "Ada" }]);
});

Deno.test("serve() requires the vars option exactly if the agent needs vars", () => {
  const plain = agent({ model: scripted() });
  const needy = agent({ model: scripted(), tools: [whoami] });
  const witnessed = agent({ vars: vars<{ tenant: string }>(), model: scripted() });
  serve(plain);
  serve(plain, { vars: () => 1 });
  serve(needy, { vars: (c: Context<{ Variables: { user: User } }>) => ({ user: c.get("user") }) });
  serve(witnessed, { vars: (c) => ({ tenant: c.req.header("x-tenant") ?? "" }), onClientGone: "drain" });
  serve(witnessed, { vars: (c) => Promise.resolve({ tenant: c.req.path }) });
  // @ts-expect-error: vars are missing
  serve(needy);
  // @ts-expect-error: vars are missing
  serve(needy, { heartbeat: 1_000 });
  // @ts-expect-error: a number is not a tenant
  serve(witnessed, { vars: () => ({ tenant: 1 }) });
});

Deno.test("serve() keeps the session of a run without a named session, and continues it", async () => {
  const model = scripted("Hello!", "Hello again!");
  const app = serve(agent({ model }));
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi again", session }));
  assertEquals(first("run.started", events).session, session);
  assertEquals(first("session.opened", events).source, "resume");
  assertEquals(model.requests[1]?.messages.map(({ role }) => role), ["user", "assistant", "user"]);
});

Deno.test("serve() stores sessions in the given store", async () => {
  const store = memory();
  const one = serve(agent({ model: scripted("Hello!") }), { store });
  const { session } = first("run.started", await eventsOf(post(one, "/runs", { prompt: "Hi" })));
  const other = serve(agent({ model: scripted("Hello again!") }), { store });
  assertEquals((await eventsOf(post(other, "/runs", { prompt: "Hi", session }))).at(-1)?.type, "run.finished");
  assertEquals((await store.load(session))?.messages.length, 4);
});

Deno.test("serve() refuses an unknown session", async () => {
  const app = serve(agent({ model: scripted() }));
  const message = `Cannot run session "s1": there is none`;
  assertEquals(await refusalOf(post(app, "/runs", { prompt: "Hi", session: "s1" })), [404, {
    code: "unknown",
    message,
  }]);
});

Deno.test("serve() refuses a second run of a session while the first holds it", async () => {
  const store = memory();
  const gate = Promise.withResolvers<void>();
  const model = scripted("Hello!", { before: () => gate.promise, text: "Slow." }, "Later.");
  const app = serve(agent({ model }), { store });
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  const slow = await post(app, "/runs", { prompt: "Slowly", session });
  const message = `Cannot run session "${session}": another run has it`;
  assertEquals(await refusalOf(post(app, "/runs", { prompt: "Hi", session })), [409, { code: "busy", message }]);
  const answers = post(app, `/sessions/${session}/answers`, { answers: [] });
  assertEquals(await refusalOf(answers), [409, { code: "busy", message }]);
  gate.resolve();
  assertEquals(first("run.finished", await eventsOf(slow)).text, "Slow.");
  const later = eventsOf(post(app, "/runs", { prompt: "Hi", session }));
  assertEquals(first("run.finished", await later).text, "Later.");
});

Deno.test("POST /runs/:id/stop stops a run once", async () => {
  const app = serve(agent({ model: waiting() }));
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const before = await pieces.until("text.delta");
  const run = before.match(/"run":"([^"]+)"/)?.[1] ?? "";

  const stopped = await post(app, `/runs/${run}/stop`);
  assertEquals([stopped.status, await stopped.text()], [204, ""]);
  const last = (await pieces.rest()).trimEnd().split("\n").at(-1) ?? "";
  assertEquals(JSON.parse(last.slice("data: ".length)), {
    type: "run.aborted",
    reason: "stop",
    text: "Wait",
    usage: { input: 0, output: 0 },
  });
  await over();
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204); // it has ended
  assertEquals((await eventsOf(app.request(`/runs/${run}`))).at(-1)?.type, "run.aborted");
});

Deno.test("serve() answers 404 to a stop of an unknown run, and 204 if it has finished", async () => {
  const app = serve(agent({ model: scripted("Hello!") }));
  const { run } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  await over();
  assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
  for (const id of [`${run}1`, "r1", "__proto__"]) {
    const message = `Cannot stop run "${id}": it does not run`;
    assertEquals(await refusalOf(post(app, `/runs/${id}/stop`)), [404, { code: "unknown", message }]);
  }
});

/** A paused run, its session, and a function that answers it. */
async function paused() {
  const model = scripted({ calls: [["remove", { path: "a" }]] }, "Done.");
  const app = serve(agent({ model, tools: [remove] }));
  const events = await eventsOf(post(app, "/runs", { prompt: "Remove a" }));
  const { session, run } = first("run.started", events);
  const answer = (...answers: readonly unknown[]) => post(app, `/sessions/${session}/answers`, { answers });
  return { app, session, run, events, answer };
}

Deno.test("serve() resumes a paused run when its question is answered", async () => {
  const { run, events, answer } = await paused();
  assertEquals(withoutSchemas(first("run.paused", events).questions), [
    { callId: "call_1", tool: "remove", input: { path: "a" }, questions: ["Run remove?"] },
  ]);
  const rest = await eventsOf(answer({ callId: "call_1", type: "approve" }));
  const { id, ...started } = first("run.started", rest);
  assertEquals([started.run, started.resumed, id], [run, true, events.length + 1]);
  assertEquals(first("approval.decided", rest).by, "person");
  assertEquals(first("tool.finished", rest).result.parts, [{ type: "text", text: "Removed a" }]);
  assertEquals(first("run.finished", rest).text, "Done.");
});

Deno.test("serve() accepts an edited input with an approval", async () => {
  const { answer } = await paused();
  const rest = await eventsOf(answer({ callId: "call_1", type: "approve", input: { path: "b" } }));
  assertEquals(first("tool.finished", rest).result.parts, [{ type: "text", text: "Removed b" }]);
});

Deno.test("serve() rejects an invalid edited input, and accepts another one", async () => {
  const { answer } = await paused();
  const changed = (path: unknown) => answer({ callId: "call_1", type: "approve", input: { path } });
  const message =
    "Cannot answer call call_1: its input is wrong: path: Invalid input: expected string, received number";
  assertEquals(await refusalOf(changed(7)), [400, { code: "invalid", message }]);
  assertEquals(first("tool.finished", await eventsOf(changed("b"))).result.status, "ok");
});

Deno.test("serve() passes a denial to the model", async () => {
  const { answer } = await paused();
  const rest = await eventsOf(answer({ callId: "call_1", type: "deny", reason: "Not that one." }));
  const { status, parts } = first("tool.finished", rest).result;
  assertEquals([status, parts], ["denied", [{ type: "text", text: "A person said no: Not that one." }]]);
});

Deno.test("serve() rejects an answer to another call, and accepts the right one afterwards", async () => {
  const { answer } = await paused();
  const message =
    "Cannot answer call call_9: it is not asked, or was answered before; expected an answer to call call_1";
  const wrong = answer({ callId: "call_1", type: "approve" }, { callId: "call_9", type: "approve" });
  assertEquals(await refusalOf(wrong), [409, { code: "unasked", message }]);
  assertEquals((await eventsOf(answer({ callId: "call_1", type: "approve" }))).at(-1)?.type, "run.finished");
});

Deno.test("serve() accepts an answer once, also if it arrives twice at the same time", async () => {
  const { session, answer } = await paused();
  const yes = { callId: "call_1", type: "approve" };
  const both = await Promise.all([answer(yes), answer(yes)]);
  const [taken, refused] = both[0].ok ? both : [both[1], both[0]];
  assertEquals((await eventsOf(taken)).at(-1)?.type, "run.finished");
  const twice = { code: "busy", message: `Cannot run session "${session}": another run took it` };
  assertEquals(await refusalOf(refused), [409, twice]);
  const late = { code: "not-paused", message: `Cannot resume session "${session}": it is not paused` };
  assertEquals(await refusalOf(answer(yes)), [409, late]);
});

Deno.test("serve() refuses answers for an unknown session", async () => {
  const app = serve(agent({ model: scripted() }));
  const message = `Cannot resume session "s1": there is none`;
  assertEquals(await refusalOf(post(app, "/sessions/s1/answers", { answers: [] })), [404, {
    code: "unknown",
    message,
  }]);
});

Deno.test("serve() resumes a run that paused without a call, with an empty list of answers", async () => {
  let asked = false;
  const sleepy: Middleware = {
    name: "sleepy",
    prompt(ctx, next) {
      if (asked) return next();
      asked = true;
      throw ctx.run.pause("Go on?");
    },
  };
  const app = serve(agent({ model: scripted("Hello!"), use: [sleepy] }));
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  assertEquals(withoutSchemas(first("run.paused", events).questions), [{ questions: ["Go on?"] }]);
  const { session } = first("run.started", events);
  const rest = await eventsOf(post(app, `/sessions/${session}/answers`, { answers: [] }));
  assertEquals(first("run.finished", rest).text, "Hello!");
});

Deno.test("serve() merges its limits with those of the agent", async () => {
  const repeated = { calls: [["whoami", {}]] } as const;
  const assistant = agent({ model: scripted(repeated, repeated, "Never."), tools: [whoami], limits: { turns: 9 } });
  const app = serve(assistant, { vars: () => ({ user: { name: "Ada" } }), limits: { turns: 2 } });
  const { status, reason } = first("run.finished", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  assertEquals([status, reason], ["limit", "turns"]);
});

Deno.test("serve() rejects a value that is not an agent", () => {
  const make = serve as (agent?: object) => unknown; // as code without types calls it
  for (const given of [undefined, {}, { model: scripted() }]) {
    assertThrows(() => make(given), TypeError, "Cannot serve: expected an agent, such as agent({ model })");
  }
});

Deno.test("serve() rejects a store without a journal", () => {
  const make = serve as (assistant: unknown, options: object) => unknown; // as code without types calls it
  const { load, save, delete: remove, list } = memory();
  const message = "Cannot serve with this `store`: it has no `journal`; expected durable(journal)";
  assertThrows(
    () => make(agent({ model: scripted() }), { store: { load, save, delete: remove, list } }),
    TypeError,
    message,
  );
});

Deno.test("serve() rejects wires that are no list of wires", () => {
  const make = serve as (assistant: unknown, options: object) => unknown; // as code without types calls it
  for (const wires of [aiSdkUi(), [aiSdkUi], [undefined], "ai_sdk"]) {
    const message = "Cannot serve: expected a list of wires in `wires`, such as [aiSdkUi()]";
    assertThrows(() => make(agent({ model: scripted() }), { wires }), TypeError, message);
  }
});

Deno.test("serve() rejects an option that it does not have, and names those that it has", () => {
  const names: Readonly<Record<keyof ServeOptions | keyof RequestVars<unknown, Env>, true>> = { // a new option is missing here
    store: true,
    events: true,
    wires: true,
    page: true,
    resumeTokens: true,
    owner: true,
    session: true,
    busy: true,
    onClientGone: true,
    lease: true,
    singleProcess: true,
    signal: true,
    grace: true,
    onEnd: true,
    limits: true,
    capacity: true,
    heartbeat: true,
    maxBody: true,
    onError: true,
    observe: true,
    storeDeadline: true,
    vars: true,
    recoveryVars: true,
  };
  const expected = `expected one of ${Object.keys(names).join(", ")}`;
  const untyped = serve as (assistant: unknown, options: unknown) => unknown; // as code without types calls it
  const assistant = agent({ model: scripted() });
  for (const name of ["ownr", "wire", "keepAlive"]) {
    const message = `Cannot serve: there is no option "${name}"; ${expected}`;
    assertThrows(() => untyped(assistant, { [name]: () => "ada" }), TypeError, message);
  }
  assertThrows(() => untyped(assistant, null), TypeError, "Cannot serve: got Null; expected an object with store,");
  untyped(assistant, { ownr: undefined });
});

Deno.test("serve() rejects options out of range", () => {
  const assistant = agent({ model: scripted() });
  for (const heartbeat of [0, -1, NaN, Infinity, 2 ** 31]) {
    assertThrows(
      () => serve(assistant, { heartbeat }),
      RangeError,
      `Cannot serve: \`heartbeat\` is ${heartbeat}; expected a positive number up to 2147483647 milliseconds`,
    );
  }
  for (const maxBody of [0, -1, NaN]) {
    assertThrows(
      () => serve(assistant, { maxBody }),
      RangeError,
      `Cannot serve: \`maxBody\` is ${maxBody}; expected a positive number of bytes`,
    );
  }
  assertThrows(() => serve(assistant, { limits: { turns: -1 } }), RangeError, `Cannot set limit "turns" to -1`);
});

const secret = "postgres://admin:hunter2@db";

Deno.test("serve() without onError writes the errors of runs and requests to the console", async () => {
  const written = captured();
  const store: Store = {
    ...memory(),
    journal: { ...memory().journal, open: () => Promise.reject(new Error("no store")) },
  };
  try {
    const failing = serve(agent({ model: scripted({ error: new Error("cut") }) }));
    const last = (await eventsOf(await post(failing, "/runs", { prompt: "Hi" }))).at(-1);
    assertEquals(last?.type, "run.failed");
    const { error: { id } } = await (await serve(agent({ model: scripted() }), { store }).request("/sessions/s"))
      .json();
    const errors = written.lines.map(([text, error]) => [text, error instanceof Error && error.message]);
    assertEquals(errors.at(-1), [`Error ${id}:`, "no store"]);
    assertEquals([errors.length, errors[0]?.[1]], [2, "cut"]);
  } finally {
    written.restore();
  }
});

Deno.test("serve() sends only the id of a failure to the client, and the error to onError", async () => {
  const leaky = tool({
    name: "leaky",
    description: "Fails",
    input: z.object({}),
    execute(): string {
      throw new Error(secret);
    },
  });
  const reported: unknown[] = [];
  const model = scripted({ calls: [["leaky", {}]] }, { text: "Half", error: new Error(secret) });
  const app = serve(agent({ model, tools: [leaky] }), {
    onError: (error, info) => reported.push([error instanceof Error && error.message, info]),
  });
  const response = await post(app, "/runs", { prompt: "Hi" });
  const text = await response.text();
  assertEquals([response.status, text.includes(secret), text.includes("hunter2"), text.includes("Error")], [
    200,
    false,
    false,
    false,
  ]);
  const failed = text.match(/"type":"run.failed","error":"([^"]+)","message":"The run failed\."/)?.[1];
  const [, run, session] = text.match(/"run":"([^"]+)","session":"([^"]+)"/) ?? [];
  assertEquals(reported.length, 2);
  assertEquals(reported[1], [secret, { id: failed, run, session }]);
});

Deno.test("serve() sends only an id for a failure before the run, at the root and mounted", async () => {
  const reported: unknown[] = [];
  const failing = () => Promise.reject(new Error(secret));
  const broken: readonly (readonly [Partial<Journal>, () => unknown])[] = [
    [{}, failing],
    [{}, () => {
      throw new TypeError(secret);
    }],
    [{ open: failing }, () => {}],
    [{ append: failing }, () => {}],
  ];
  for (const [operations, vars] of broken) {
    const make = () =>
      serve(agent({ model: scripted() }), {
        store: { ...memory(), journal: { ...memory().journal, ...operations } },
        session: () => "s1", // it is read, since it may exist
        vars,
        onError: (error, info) => reported.push([error instanceof Error && error.message, info]),
      });
    for (const [prefix, app] of everywhere(make)) {
      const [status, error] = await refusalOf(post(app, `${prefix}/runs`, { prompt: "Hi" }));
      const [message, info] = [reported.pop()].flat() as [string, { readonly id: string }]; // reported above
      assertEquals([status, error], [500, { code: "internal", message: "The request failed.", id: info.id }]);
      assertEquals([message, info, reported.length], [secret, { id: info.id, session: "s1" }, 0]);
    }
  }
});

Deno.test("serve() returns 500 for a thrown value that is not an Error, at the root and mounted", async () => {
  for (const thrown of [null, undefined, secret, Object.freeze({})]) {
    const reported: unknown[] = [];
    const make = () =>
      serve(agent({ model: scripted() }), {
        vars: () => Promise.reject(thrown),
        onError: (error, { id }) => reported.push([error, id]),
      });
    for (const [prefix, app] of everywhere(make)) {
      const [status, error] = await refusalOf(post(app, `${prefix}/runs`, { prompt: "Hi" }));
      const [[what, id]] = reported.splice(0) as [[unknown, string]]; // reported above
      assertEquals([status, error, what], [500, { code: "internal", message: "The request failed.", id }, thrown]);
    }
  }
});

Deno.test("serve() responds with an HTTPException of another copy of Hono", async () => {
  class OtherException extends Error {
    getResponse = () => new Response(this.message, { status: 403 });
  }
  const vars = () => Promise.reject(new OtherException("Not you."));
  const response = await post(serve(agent({ model: scripted() }), { vars }), "/runs", { prompt: "Hi" });
  assertEquals([response.status, await response.text()], [403, "Not you."]);
});

Deno.test("serve() responds with an HTTPException of the vars option", async () => {
  const reported: unknown[] = [];
  const make = () =>
    serve(agent({ model: scripted() }), {
      vars() {
        throw new HTTPException(403, { message: "Not you." });
      },
      onError: (error) => reported.push(error),
    });
  for (const [prefix, app] of everywhere(make)) {
    const response = await post(app, `${prefix}/runs`, { prompt: "Hi" });
    assertEquals([response.status, await response.text(), reported], [403, "Not you.", []]);
  }
});

/** Resolves when a run whose last event was read has ended. */
function over(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

Deno.test("serve() continues if onError returns a promise that rejects", async () => {
  const reported: unknown[] = [];
  const app = serve(agent({ model: scripted() }), {
    owner() {
      throw new Error("down");
    },
    async onError(error) {
      await Promise.resolve();
      reported.push(error instanceof Error && error.message);
      throw error;
    },
  });
  const response = await post(app, "/runs", { prompt: "Hi" });
  await response.body?.cancel();
  assertEquals(response.status, 500);
  await new Promise((resolve) => setTimeout(resolve, 0)); // an unhandled rejection would fail the test
  assertEquals(reported, ["down"]);
});
