/**
 * The facts that a server observes, and what it holds.
 *
 * @module
 */
import {
  agent,
  cancelled,
  continueWith,
  memory,
  type Middleware,
  ModelError,
  type ModelEvent,
  serve,
  type ServedApp,
  type ServeOptions,
} from "@jizai/jizai";
import type { ServerFact } from "@jizai/jizai/facts";
import { asTool } from "@jizai/jizai/subagents";
import { compaction } from "@jizai/jizai/middleware/compaction";
import { retry } from "@jizai/jizai/middleware/retry";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable, FinalError } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { drop } from "../support/asking.ts";
import { advance, advanceUntilSettled } from "../support/fake_time.ts";
import { processOf, shared } from "../support/process.ts";
import { eventsOf, first, framesOf, piecesOf, post } from "../support/requests.ts";
import { stepping } from "../support/stepping.ts";

/** Serves an agent, and collects its facts. Times are left out. */
function observed(options: ServeOptions = {}, model = scripted("Hello!")) {
  const facts: ServerFact[] = [];
  const observe = (fact: ServerFact) => void facts.push("milliseconds" in fact ? { ...fact, milliseconds: 0 } : fact);
  return { app: serve(agent({ model, tools: [drop] }), { ...options, observe }), facts };
}

/** Returns the starts of runs, with the state before, and their ends, with the status. */
function changesOf(facts: readonly ServerFact[]): readonly unknown[] {
  return facts.flatMap((fact) =>
    "cause" in fact ? [[fact.type, fact.cause, fact.type === "run.ended" ? fact.status : fact.before]] : []
  );
}

Deno.test("serve() observes the start and the end of a run, with the tokens since its start", async () => {
  const usage = { input: 10, output: 2, cached: 4 };
  const model = scripted({ calls: [{ id: "c1", name: "drop", input: { table: "a" } }], usage }, {
    text: "Done.",
    usage,
  });
  const { app, facts } = observed({ owner: () => "ada" }, model);
  const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
  const answers = [{ callId: "c1", type: "approve" }];
  await eventsOf(post(app, `/sessions/${session}/answers`, { answers }));
  await app.settled();
  const place = { run, session, owner: "ada" };
  assertEquals(facts, [
    { type: "run.started", ...place, cause: "prompt" },
    { type: "model.used", ...place, model: "scripted", usage },
    { type: "run.ended", ...place, cause: "prompt", status: "paused", milliseconds: 0, usage },
    { type: "run.started", ...place, cause: "answers", before: "paused" },
    { type: "model.used", ...place, model: "scripted", usage },
    { type: "run.ended", ...place, cause: "answers", status: "done", milliseconds: 0, usage },
  ]);
});

Deno.test("serve() observes a run that is handed over, and its recovery in another process", async () => {
  const among = shared();
  const shutdown = new AbortController();
  const facts: ServerFact[] = [];
  const { model, release } = stepping("One.");
  const observe = (fact: ServerFact) => void facts.push(fact);
  const { app } = processOf(among, agent({ model }), { observe, signal: shutdown.signal, grace: 0 });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  await pieces.until("model.started");
  shutdown.abort();
  await new Promise((resolve) => setTimeout(resolve, 0));
  release(0);
  await app.settled();
  await pieces.rest();
  const other = processOf(among, agent({ model: scripted("Hello!") }), { observe });
  await (await other.app.recover()).over;
  await other.app.settled();
  assertEquals(changesOf(facts), [
    ["run.started", "prompt", undefined],
    ["run.ended", "prompt", "handed-over"],
    ["run.started", "recovery", "handed-over"],
    ["run.ended", "recovery", "done"],
  ]);
});

Deno.test("serve() observes the recovery of a lost run, with the time since the end of its lease", async () => {
  using time = new FakeTime();
  const among = shared();
  const facts: ServerFact[] = [];
  const { model } = stepping("One.");
  const one = processOf(among, agent({ model }), { lease: 2_000, onError() {} });
  const pieces = piecesOf(await post(one.app, "/runs", { prompt: "Hi" }));
  await pieces.until("model.started");
  one.kill();
  const two = processOf(among, agent({ model: scripted("Hello!") }), { observe: (fact) => void facts.push(fact) });
  await advance(time, 3_500);
  await (await two.app.recover()).over;
  await two.app.settled();
  assertEquals(changesOf(facts), [["run.started", "recovery", "lost"], ["run.ended", "recovery", "done"]]);
  assertEquals(facts.flatMap((fact) => "lag" in fact ? [[fact.lag, fact.recoveries]] : []), [[1_500, 1]]);
});

Deno.test("the tokens of the requests that serve() observes are those of the run, also of attempts, subagents and summaries", async () => {
  const answer = (text: string, input: number) => ({ text, usage: { input, output: 1 } });
  const child = agent({ name: "child", description: "Helps", model: { ...scripted(answer("Hi.", 5)), id: "small" } });
  const end: ModelEvent = { type: "finish", reason: "stop", usage: { input: 3, output: 1 } };
  const model = scripted(
    { reads: [[end]], error: new ModelError("Cut", { recoverable: true }) },
    { calls: [["child", { prompt: "Help" }]], usage: { input: 7, output: 1 } },
    answer("Done.", 11),
    answer("A summary.", 13),
  );
  const facts: ServerFact[] = [];
  const app = serve(agent({ model, tools: [asTool(child)], use: [retry({ delay: 0 }), compaction()] }), {
    observe: (fact) => void facts.push(fact),
    onError() {},
  });
  const { session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Hi" })));
  await eventsOf(post(app, `/sessions/${session}/compact`, {}));
  await app.settled();
  const used = facts.flatMap((fact) => fact.type === "model.used" ? [[fact.model, fact.usage.input]] : []);
  assertEquals(used, [["scripted", 3], ["scripted", 7], ["small", 5], ["scripted", 11], ["scripted", 13]]);
  assertEquals(facts.flatMap((fact) => fact.type === "run.ended" ? [fact.usage.input] : []), [26, 13]);
});

Deno.test("serve() observes the reasons of the engine for an end, and no text of a caller or a hook", async () => {
  const cases: readonly (readonly [Middleware, string | undefined])[] = [
    [{ name: "cancels", prompt: () => Promise.resolve(cancelled("hunter2")) }, undefined],
    [{ name: "ends", turn: ({ run }) => Promise.reject(run.end("hunter2", { as: "limit" })) }, undefined],
    [{ name: "goes on", stop: () => Promise.resolve(continueWith("hunter2")) }, "turns"],
  ];
  for (const [middleware, reason] of cases) {
    const facts: ServerFact[] = [];
    const attacked = agent({ model: scripted("hunter2"), use: [middleware], limits: { turns: 1 } });
    const app = serve(attacked, { observe: (fact) => void facts.push(fact) });
    await eventsOf(post(app, "/runs", { prompt: "hunter2" }));
    await app.settled();
    assertEquals(facts.flatMap((fact) => fact.type === "run.ended" ? [fact.reason] : []), [reason]);
    assertEquals(JSON.stringify(facts).includes("hunter2"), false);
  }
});

Deno.test("serve() observes refused requests with their route, status and code, and no path of a client", async () => {
  const { app, facts } = observed({ vars: () => ({}) } as ServeOptions);
  await post(app, "/runs", { prompt: 1 });
  await post(app, "/runs/secret/stop");
  await app.request("/secret");
  await app.request("/runs", { method: "PUT" });
  assertEquals(facts, [
    { type: "request.refused", route: "POST /runs", status: 400, code: "invalid" },
    { type: "request.refused", route: "POST /runs/:id/stop", status: 404, code: "unknown" },
    { type: "request.refused", route: "*", status: 404, code: "unknown" },
    { type: "request.refused", route: "*", status: 405, code: "method" },
  ]);
});

Deno.test("serve() observes each call of a store that outlives the process, and none of one in memory", async () => {
  const operations = async (options: ServeOptions) => {
    const { app, facts } = observed(options);
    await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    await app.settled();
    return new Set(facts.flatMap((fact) => fact.type === "store.called" ? [`${fact.operation} ${fact.outcome}`] : []));
  };
  assertEquals(await operations({ store: durable(memory().journal) }), new Set(["append ok"]));
  assertEquals(await operations({ store: memory() }), new Set());
});

Deno.test("serve() observes each call of the store that is repeated, and none after a final error", async () => {
  const { journal } = memory();
  let failures = 2;
  const append: typeof journal.append = (...given) =>
    failures-- > 0 ? Promise.reject(new Error("The connection was reset")) : journal.append(...given);
  using time = new FakeTime();
  const { app, facts } = observed({ store: durable({ ...journal, append }) });
  const events = await advanceUntilSettled(time, eventsOf(post(app, "/runs", { prompt: "Hi" })));
  assertEquals(events.at(-1)?.type, "run.finished");
  await app.settled();
  const calls = facts.flatMap((fact) =>
    fact.type === "store.called" ? [fact.outcome] : fact.type === "store.retried" ? [fact.operation] : []
  );
  assertEquals(calls.slice(0, 5), ["failed", "append", "failed", "append", "ok"]);
  assertEquals(new Set(calls.slice(5)), new Set(["ok"]));
  const broken = new FinalError("It is too large");
  const refusing = observed({
    store: durable({ ...journal, append: () => Promise.reject(broken) }),
    onError() {},
  });
  await (await post(refusing.app, "/runs", { prompt: "Hi" })).text();
  await refusing.app.settled();
  assertEquals(new Set(refusing.facts.map(({ type }) => type)), new Set(["store.called", "request.refused"]));
});

Deno.test("stats() counts the events that wait until they are stored", async () => {
  const { journal } = memory();
  const stored = Promise.withResolvers<void>();
  let appends = 0;
  const append: typeof journal.append = async (...given) => {
    if (++appends === 2) await stored.promise; // the first one is that of the claim
    return await journal.append(...given);
  };
  const app = serve(agent({ model: scripted("Hello!") }), { store: durable({ ...journal, append }) });
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  await pieces.until("run.started");
  while (appends < 2) await new Promise((resolve) => setTimeout(resolve, 0));
  const { waiting } = app.stats();
  stored.resolve();
  const events = framesOf(await pieces.rest());
  await app.settled();
  assertEquals([waiting > 0, waiting <= events.length, app.stats().waiting], [true, true, 0]);
});

Deno.test("an observer that throws or rejects harms no run, and is reported to onError", async () => {
  const errors: unknown[] = [];
  const observers = [() => {
    throw new Error("The meter is broken");
  }, () => Promise.reject(new Error("The meter is broken"))];
  for (const observe of observers) {
    const store = durable(memory().journal);
    const app = serve(agent({ model: scripted("Hello!") }), {
      store,
      observe,
      onError: (error) => errors.push(`${error}`),
    });
    const events = await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    assertEquals(events.at(-1)?.type, "run.finished");
    await app.settled();
  }
  assertEquals(new Set(errors), new Set(["Error: The meter is broken"]));
});

Deno.test("stats() counts runs, streams, followers and queued prompts while there are any", async () => {
  const { model, release } = stepping("One.");
  const app: ServedApp = serve(agent({ model }), { busy: "queue", onClientGone: "detach" });
  const none = { runs: 0, streams: 0, followers: 0, queued: 0, waiting: 0, bytes: 0 };
  assertEquals(app.stats(), none);
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const [, run, session] = /"run":"([^"]*)","session":"([^"]*)"/.exec(await pieces.until("model.started")) ?? [];
  const { bytes } = app.stats();
  assertEquals(bytes > 65_536 && bytes < 70_000, true); // as `capacity.bytes` counts a run
  assertEquals(app.stats(), { ...none, runs: 1, streams: 1, bytes });
  const follower = await app.request(`/runs/${run}`);
  const queued = post(app, "/runs", { prompt: "And?", session });
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(app.stats(), { runs: 1, streams: 2, followers: 1, queued: 1, waiting: 0, bytes });
  await follower.body?.cancel();
  assertEquals(app.stats(), { ...none, runs: 1, streams: 1, queued: 1, bytes });
  release(0);
  await pieces.rest();
  await (await queued).text();
  await app.settled();
  assertEquals(app.stats(), none);
});
