/**
 * The facts that a server observes, and what it holds.
 *
 * @module
 */
import { agent, memory, serve, type ServedApp, type ServeOptions } from "@jizai/jizai";
import type { ServerFact } from "@jizai/jizai/facts";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { drop } from "../support/asking.ts";
import { processOf, shared } from "../support/process.ts";
import { eventsOf, first, piecesOf, post } from "../support/requests.ts";
import { stepping } from "../support/stepping.ts";

/** Serves an agent, and collects its facts. Times are left out. */
function observed(options: ServeOptions = {}, model = scripted("Hello!")) {
  const facts: ServerFact[] = [];
  const observe = (fact: ServerFact) => void facts.push("milliseconds" in fact ? { ...fact, milliseconds: 0 } : fact);
  return { app: serve(agent({ model, tools: [drop] }), { ...options, observe }), facts };
}

/** Returns the facts that are not about the store. */
function ofRuns(facts: readonly ServerFact[]): readonly ServerFact[] {
  return facts.filter(({ type }) => !type.startsWith("store."));
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
    { type: "run.ended", ...place, cause: "prompt", status: "paused", milliseconds: 0, usage },
    { type: "run.started", ...place, cause: "answers" },
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
  const seen = ofRuns(facts).map((fact) => "cause" in fact && [fact.type, fact.cause, "status" in fact && fact.status]);
  assertEquals(seen, [
    ["run.started", "prompt", false],
    ["run.ended", "prompt", "handed-over"],
    ["run.started", "recovery", false],
    ["run.ended", "recovery", "done"],
  ]);
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
  const none = { runs: 0, streams: 0, followers: 0, queued: 0 };
  assertEquals(app.stats(), none);
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  const [, run, session] = /"run":"([^"]*)","session":"([^"]*)"/.exec(await pieces.until("model.started")) ?? [];
  assertEquals(app.stats(), { ...none, runs: 1, streams: 1 });
  const follower = await app.request(`/runs/${run}`);
  const queued = post(app, "/runs", { prompt: "And?", session });
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(app.stats(), { runs: 1, streams: 2, followers: 1, queued: 1 });
  await follower.body?.cancel();
  assertEquals(app.stats(), { ...none, runs: 1, streams: 1, queued: 1 });
  release(0);
  await pieces.rest();
  await (await queued).text();
  await app.settled();
  assertEquals(app.stats(), none);
});
