import { agent, deny, type Event, memory, type Middleware, serve, type ServeOptions, tool, vars } from "@jizai/jizai";
import { permissions } from "@jizai/jizai/middleware/permissions";
import { redact } from "@jizai/jizai/middleware/redact";
import { scripted } from "@jizai/jizai/model/scripted";
import { playground } from "@jizai/jizai/playground";
import { outline } from "@jizai/jizai/testing";
import { trace } from "@jizai/jizai/trace";
import { assertEquals } from "@std/assert";
import type { Context } from "hono";
import * as z from "zod";
import { eventsOf, post } from "../support/requests.ts";

interface Customer {
  readonly user: string;
}

const look = tool({
  name: "look",
  description: "Looks",
  input: z.object({ at: z.string() }),
  execute: ({ at }, { vars }: { readonly vars: Customer }) => `${vars.user} sees ${at}`,
});
const order = tool({
  name: "order",
  description: "Orders",
  input: z.object({ what: z.string() }),
  ask: true,
  execute: ({ what }) => `Ordered ${what}`,
});

/** Serves an agent whose model must not be asked. */
function app(use: readonly Middleware[] = [], options: Partial<ServeOptions> = {}) {
  const assistant = agent({
    vars: vars<Customer>(),
    model: scripted(),
    tools: [look, order],
    use,
    output: z.number(),
    trace,
  });
  return serve(assistant, {
    page: playground(),
    vars: (c: Context) => ({ user: c.req.header("x-user") ?? "Ada" }),
    onError: () => {},
    ...options,
  });
}

const call = (name: string, input: unknown) => ({ name, input });

/** Returns the lines of the events of a call, without those that every run has. */
function linesOf(events: readonly Event[]): readonly string[] {
  return outline(events).filter((line) =>
    !/^(hook|session|prompt|turn|call|run\.started|approval\.decided)/.test(line)
  );
}

Deno.test("POST /calls runs one tool, asks no model, and exists only with a page and a trace", async () => {
  const events = await eventsOf(post(app(), "/calls", call("look", { at: "tea" })));
  assertEquals(outline(events), [
    "run.started",
    "session.opened new",
    "prompt.accepted Run look",
    "turn.started 1",
    "call.ready look call",
    "tool.started look call",
    "approval.decided call allow policy",
    "tool.finished call ok Ada sees tea",
    "turn.finished 1",
    "session.closed",
    "run.finished done",
  ]);
  for (
    const without of [
      serve(agent({ model: scripted(), trace })),
      serve(agent({ model: scripted() }), { page: playground() }),
    ]
  ) {
    const refused = await post(without, "/calls", call("look", {}));
    assertEquals([refused.status, (await refused.json()).error.code], [404, "unknown"]);
  }
});

Deno.test("a call of POST /calls passes the hooks at tool and approval, the schema of its tool and the limits of the run", async () => {
  const passed: string[] = [];
  const watch: Middleware = {
    name: "watch",
    input: (ctx, next) => (passed.push(`input ${ctx.source}`), next()),
    model: (_, next) => (passed.push("model"), next()),
    stop: (_, next) => (passed.push("stop"), next()),
    async tool(ctx, next) {
      passed.push(`tool ${JSON.stringify(ctx.input)}`);
      return await next(ctx.name === "look" ? { input: { at: `${Object(ctx.input).at}!` } } : {});
    },
    approval(ctx, next) {
      passed.push(`approval ${JSON.stringify(ctx.input)}`);
      return Object(ctx.input).at === "secret!" ? Promise.resolve(deny("It is secret.")) : next();
    },
  };
  const run = async (name: string, input: unknown, options: Partial<ServeOptions> = {}, headers = {}) =>
    linesOf(
      await eventsOf(post(app([redact({ secrets: ["pwd"] }), watch], options), "/calls", call(name, input), headers)),
    );
  assertEquals(await run("look", { at: "pwd" }, {}, { "x-user": "Grace" }), [
    "tool.started look call",
    "tool.finished call ok Grace sees [redacted]!",
    "run.finished done",
  ]);
  assertEquals(passed, ["input prompt", 'tool {"at":"[redacted]"}', 'approval {"at":"[redacted]!"}']);
  assertEquals((await run("look", { at: "secret" }))[1], "tool.finished call denied It is secret.");
  assertEquals(
    (await run("missing", {}))[1],
    'tool.finished call error There is no tool "missing". The tools are: look, order',
  );
  assertEquals((await run("order", { what: 5 }))[1]?.slice(0, 25), "tool.finished call error ");
  assertEquals(
    (await run("look", { at: "x" }, { limits: { calls: 0 } }))[1],
    "tool.finished call skipped Not run: this run may make 0 calls.",
  );
});

Deno.test("a call of POST /calls that asks pauses, ends after its answer in another process, and belongs to its owner", async () => {
  const store = memory();
  const rules = permissions({ ask: [{ tool: "look", why: "Look?" }] });
  const process = () => app([rules], { store, owner: (c) => c.req.header("x-user") ?? "Ada" });
  for (const [type, end] of [["approve", "ok Ada sees tea"], ["deny", "denied A person said no."]] as const) {
    const events = await eventsOf(post(process(), "/calls", call("look", { at: "tea" })));
    assertEquals(linesOf(events), ["tool.started look call", "approval.asked call Look?", "run.paused Look?"]);
    const session = events.flatMap((event) => event.type === "run.started" ? [event.session] : [])[0];
    const path = `/sessions/${session}/answers`;
    const answers = [{ callId: "call", type }];
    assertEquals((await post(process(), path, { answers }, { "x-user": "Eve" })).status, 404);
    assertEquals(linesOf(await eventsOf(post(process(), path, { answers }))), [
      "tool.started look call",
      `tool.finished call ${end}`,
      "run.finished done",
    ]);
    const { messages } = await (await process().request(`/sessions/${session}`)).json();
    assertEquals(messages.map(({ role }: { role: string }) => role), ["user", "assistant", "tool"]);
  }
});

Deno.test("POST /calls refuses a body without the name of a tool", async () => {
  for (const body of [{ input: {} }, { name: 5, input: {} }, []]) {
    assertEquals((await post(app(), "/calls", body)).status, 400);
  }
});
