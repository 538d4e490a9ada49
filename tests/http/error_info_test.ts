/**
 * The ids of reported errors: each source of reports gives the run, the session, the owner and the trace that it knows, so that one line of JSON is complete.
 *
 * @module
 */
import { agent, type ErrorInfo, memory, type Middleware, serve, type ServeOptions, tool } from "@jizai/jizai";
import { asTool } from "@jizai/jizai/subagents";
import { logger, type LogLine } from "@jizai/jizai/middleware/logger";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import * as z from "zod";
import { advance } from "../support/fake_time.ts";
import { failingAppends } from "../support/events_journal.ts";
import { processOf, shared } from "../support/process.ts";
import { eventsOf, first, type Framed, post } from "../support/requests.ts";

const trace = "0af7651916cd43dd8448eb211c80319c";
const headers = { traceparent: `00-${trace}-b7ad6b7169203331-01` };

/** An app whose reports are collected as lines of JSON, with the owner "ada". */
function reporting(assistant: ReturnType<typeof agent>, options: ServeOptions = {}) {
  const lines: (ErrorInfo & { readonly error: string })[] = [];
  const app = serve(assistant, {
    owner: () => "ada",
    onError: (error, info) => void lines.push(JSON.parse(JSON.stringify({ error: String(error), ...info }))),
    ...options,
  });
  return { app, lines };
}

/** Returns lines without their ids, which are random. */
function withoutIds(lines: readonly (ErrorInfo & { readonly error: string })[]) {
  return lines.map(({ id, ...line }) => (assertEquals(typeof id, "string"), line));
}

/** Returns the run and the session of a stream. */
function placeOf(events: readonly Framed[]) {
  const { run, session } = first("run.started", events);
  return { run, session };
}

const failing: Middleware = {
  name: "failing",
  turn(ctx, next) {
    ctx.run.report(new Error("reported"));
    return next();
  },
};

Deno.test("onError receives the run, session, owner and trace of an error of a run", async () => {
  const { app, lines } = reporting(agent({ model: scripted("Hello!"), use: [failing] }));
  const place = placeOf(await eventsOf(post(app, "/runs", { prompt: "Hi" }, headers)));
  assertEquals(withoutIds(lines), [{ error: "Error: reported", ...place, owner: "ada", trace }]);
});

Deno.test("onError receives the id of a child run, with the session, owner and trace of its parent", async () => {
  const child = agent({ name: "child", description: "Helps", model: scripted("Helped."), use: [failing] });
  const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
  const { app, lines } = reporting(agent({ model, tools: [asTool(child)] }));
  const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }, headers));
  const { session, run } = placeOf(events);
  assertEquals(withoutIds(lines).map(({ run: _, ...line }) => line), [
    { error: "Error: reported", session, owner: "ada", trace },
  ]);
  assertEquals([typeof lines[0]?.run, lines[0]?.run === run], ["string", false]);
});

Deno.test("onError receives the session, owner and trace of a request that fails, and no owner of a client that was not identified", async () => {
  const { journal } = memory();
  const away = () => Promise.reject(new TypeError("away"));
  const { app, lines } = reporting(agent({ model: scripted() }), {
    store: durable({ ...journal, head: away, open: away }),
  });
  assertEquals((await app.request("/sessions/s1", { headers })).status, 500);
  assertEquals((await app.request("/sessions/s1")).status, 500);
  assertEquals(withoutIds(lines), [
    { error: "TypeError: away", session: "s1", owner: "ada", trace },
    { error: "TypeError: away", session: "s1", owner: "ada" },
  ]);
  const unknown = reporting(agent({ model: scripted() }), { owner: () => Promise.reject(new Error("no identity")) });
  assertEquals((await unknown.app.request("/sessions/s1", { headers })).status, 500);
  assertEquals(withoutIds(unknown.lines), [{ error: "Error: no identity", session: "s1", trace }]);
});

Deno.test("onError receives the run, session and owner of a report of an end that fails", async () => {
  using time = new FakeTime();
  const { app, lines } = reporting(agent({ model: scripted("Hello!") }), {
    onEnd: () => Promise.reject(new Error("not delivered")),
  });
  const place = placeOf(await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  await advance(time, 60_000);
  await app.settled();
  assertEquals(withoutIds(lines), Array(4).fill({ error: "Error: not delivered", ...place, owner: "ada" }));
});

Deno.test("onError receives the run, session and owner of a run that recover() cannot continue", async () => {
  using time = new FakeTime();
  const among = shared();
  const execute = () => new Promise<never>(() => {});
  const wait = tool({ name: "wait", description: "Waits", input: z.object({}), execute });
  const dead = processOf(among, agent({ model: scripted({ calls: [["wait", {}]] }), tools: [wait] }), {
    owner: () => "ada",
    onError() {},
  });
  const response = await post(dead.app, "/runs", { prompt: "Hi" }, { prefer: "respond-async" });
  const place: { readonly run: string; readonly session: string } = await response.json();
  dead.kill();
  await advance(time, 31_000);
  const { app, lines } = reporting(agent({ model: scripted() }), {
    store: durable(failingAppends(among.store, () => true)),
  });
  const recovered = app.recover();
  await advance(time, 5_000);
  await (await recovered).over;
  const own = withoutIds(lines).filter(({ error }) => !error.startsWith("SlowStoreError"));
  assertEquals(own, Array(2).fill({ error: "Error: The store is down", ...place, owner: "ada" })); // it cannot be postponed either
});

Deno.test("a line of logger() has the run, the session, the owner and the trace, also in a child run", async () => {
  const lines: LogLine[] = [];
  const child = agent({ name: "child", description: "Helps", model: scripted("Helped.") });
  const model = scripted({ calls: [["child", { prompt: "Help" }]] }, "Done.");
  const assistant = agent({ model, tools: [asTool(child)], use: [logger((line) => lines.push(line))] });
  const { app } = reporting(assistant);
  const { run, session } = placeOf(await eventsOf(post(app, "/runs", { prompt: "Hi" }, headers)));
  assertEquals(new Set(lines.map((line) => `${line.owner} ${line.trace}`)), new Set([`ada ${trace}`]));
  const last = lines.at(-1);
  assertEquals([last?.run, last?.session], [run, session]);
});
