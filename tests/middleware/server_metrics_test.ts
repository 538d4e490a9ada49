/**
 * The metrics of a server: what is recorded is what the list says.
 *
 * @module
 */
import { agent, memory, type Model, serve, type ServeOptions } from "@jizai/jizai";
import type { ServerFact } from "@jizai/jizai/facts";
import {
  type ServerMetric,
  serverMetricList,
  serverMetrics,
  type ServerMetricsOptions,
} from "@jizai/jizai/middleware/server_metrics";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { dashboard, dashboardText, target } from "../../examples/fleet/dashboard.ts";
import { drop } from "../support/asking.ts";
import { type Instrument, recorder, type Sample } from "../support/recorder.ts";
import { eventsOf, first, piecesOf, post } from "../support/requests.ts";
import { stepping } from "../support/stepping.ts";

/** Serves an agent with metrics. `stats()` reads the gauges. */
function measured(model: Model = scripted("Hello!"), options: ServeOptions & ServerMetricsOptions = {}) {
  const { prices, byOwner, ...served } = options;
  const { api, samples, gauges } = recorder();
  const metrics = serverMetrics(api, { ...(prices && { prices }), ...(byOwner !== undefined && { byOwner }) });
  const app = serve(agent({ model, tools: [drop] }), { ...served, observe: metrics.observe });
  metrics.watch(app);
  return { app, metrics, samples, gauges };
}

/** Records facts, and returns the samples. */
function samplesOf(...facts: readonly ServerFact[]): readonly Sample[] {
  const { api, samples } = recorder();
  const { observe } = serverMetrics(api);
  samples.splice(0); // the zeros
  for (const fact of facts) observe(fact);
  return samples;
}

/** Returns the samples of a metric that are not 0. */
function of(samples: readonly Sample[], name: string): readonly (readonly [object, number])[] {
  return samples.flatMap(([metric, attributes, value]) =>
    metric === name && value !== 0 ? [[attributes, value] as const] : []
  );
}

const place = { run: "r", session: "s", owner: "ada" };
const usage = { input: 0, output: 0 };

Deno.test("serverMetrics() creates each instrument of the list, with its unit and its description", () => {
  const { api, instruments } = recorder();
  serverMetrics(api);
  const listed = serverMetricList.map(
    ({ name, instrument, unit, description }): Instrument => [name, instrument, unit, description],
  );
  assertEquals(instruments, listed);
});

Deno.test("serverMetrics() begins the counters of pauses, hand-overs and continued runs at 0", () => {
  const { api, samples } = recorder();
  serverMetrics(api);
  assertEquals(samples, [
    ["jizai.server.paused", {}, 0],
    ["jizai.server.handed_over", {}, 0],
    ["jizai.server.continued", { "jizai.before": "paused" }, 0],
    ["jizai.server.continued", { "jizai.before": "lost" }, 0],
    ["jizai.server.continued", { "jizai.before": "handed-over" }, 0],
  ]);
});

Deno.test("serverMetrics() records every metric of the list, with no attribute beside those of the list", async () => {
  const { api, samples, gauges } = recorder();
  const { observe, watch } = serverMetrics(api, { prices: { scripted: { input: 1, output: 1 } }, byOwner: true });
  const model = scripted({ text: "Hello!", usage: { input: 10, output: 2 } });
  const app = serve(agent({ model }), { owner: () => "ada", observe });
  watch(app);
  await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  await post(app, "/runs", {});
  observe({ type: "run.started", ...place, cause: "recovery", before: "lost", lag: 1_500 });
  for (const status of ["paused", "handed-over"] as const) {
    observe({ type: "run.ended", ...place, cause: "recovery", status, milliseconds: 2_000, usage });
  }
  observe({ type: "store.called", operation: "append", milliseconds: 20, outcome: "deadline" });
  observe({ type: "store.retried", operation: "append" });
  observe({ type: "store.slow", operation: "append", milliseconds: 1_000 });
  const recorded = new Map<string, Set<string>>(Object.keys(gauges()).map((name) => [name, new Set()]));
  for (const [name, attributes] of samples) {
    recorded.set(name, new Set([...recorded.get(name) ?? [], ...Object.keys(attributes)]));
  }
  const listed = serverMetricList.map(({ name, attributes }: ServerMetric) => [name, new Set(attributes)] as const);
  assertEquals(recorded, new Map(listed));
});

Deno.test("serverMetrics() reads the gauges from the servers that it watches, and adds them", async () => {
  const { model, release } = stepping("One.");
  const { app, metrics, gauges } = measured(model);
  const pieces = piecesOf(await post(app, "/runs", { prompt: "Hi" }));
  await pieces.until("model.started");
  const names = Object.keys(app.stats()).map((stat) => `jizai.server.${stat}`);
  assertEquals(Object.keys(gauges()).sort(), names.sort());
  assertEquals(gauges()["jizai.server.runs"], 1);
  metrics.watch({ stats: () => ({ runs: 2, streams: 0, followers: 3, queued: 4, waiting: 5, bytes: 6 }) });
  const bytes = 6 + app.stats().bytes;
  assertEquals(gauges(), {
    "jizai.server.bytes": bytes,
    "jizai.server.runs": 3,
    "jizai.server.streams": 1,
    "jizai.server.followers": 3,
    "jizai.server.queued": 4,
    "jizai.server.waiting": 5,
  });
  release(0);
  await pieces.rest();
  await app.settled();
  assertEquals(gauges()["jizai.server.runs"], 2);
});

Deno.test("serverMetrics() counts runs that pause, and those that continue after an answer or a stop", async () => {
  for (const cause of ["answers", "stop"] as const) {
    const { app, samples } = measured(
      scripted({ calls: [{ id: "c1", name: "drop", input: { table: "a" } }] }, "Done."),
    );
    const { run, session } = first("run.started", await eventsOf(post(app, "/runs", { prompt: "Drop a" })));
    assertEquals([of(samples, "jizai.server.paused"), of(samples, "jizai.server.continued")], [[[{}, 1]], []]);
    if (cause === "answers") {
      await eventsOf(post(app, `/sessions/${session}/answers`, { answers: [{ callId: "c1", type: "approve" }] }));
    } else {
      assertEquals((await post(app, `/runs/${run}/stop`)).status, 204);
    }
    await app.settled();
    assertEquals(of(samples, "jizai.server.paused"), [[{}, 1]]);
    assertEquals(of(samples, "jizai.server.continued"), [[{ "jizai.before": "paused" }, 1]]);
    assertEquals(of(samples, "jizai.server.started"), [[{ "jizai.cause": "prompt" }, 1], [
      { "jizai.cause": cause },
      1,
    ]]);
    const statuses = of(samples, "jizai.server.duration").map(([attributes]) => attributes);
    const status = cause === "answers" ? "done" : "aborted";
    assertEquals(statuses, [{ "jizai.status": "paused" }, { "jizai.status": status }]);
  }
});

Deno.test("serverMetrics() counts recoveries by the state before, and measures the lag of leases alone", () => {
  const started = { type: "run.started", ...place, cause: "recovery" } as const;
  const samples = samplesOf({ ...started, before: "lost", lag: 250 }, { ...started, before: "handed-over" }, {
    ...started,
    before: "lost",
  });
  assertEquals(of(samples, "jizai.server.continued"), [
    [{ "jizai.before": "lost" }, 1],
    [{ "jizai.before": "handed-over" }, 1],
    [{ "jizai.before": "lost" }, 1],
  ]);
  assertEquals(of(samples, "jizai.server.lease_lag"), [[{}, 0.25]]);
  assertEquals(of(samples, "jizai.server.started").length, 3);
  const ended = { type: "run.ended", ...place, cause: "prompt", milliseconds: 2_000, usage } as const;
  assertEquals(samplesOf({ ...ended, status: "handed-over" }), [
    ["jizai.server.duration", { "jizai.status": "handed-over" }, 2],
    ["jizai.server.handed_over", {}, 1],
  ]);
});

Deno.test("serverMetrics() counts refused requests by their route and reason", async () => {
  const { app, samples } = measured();
  await post(app, "/runs", { prompt: 1 });
  await app.request("/secret");
  const [invalid, unknown] = of(samples, "jizai.server.refused");
  const route = { "http.route": "POST /runs", "http.response.status_code": 400, "error.type": "invalid" };
  assertEquals(invalid, [route, 1]);
  assertEquals(unknown, [{ "http.route": "*", "http.response.status_code": 404, "error.type": "unknown" }, 1]);
  const [withoutCode] = of(
    samplesOf({ type: "request.refused", route: "POST /runs", status: 401 }),
    "jizai.server.refused",
  );
  assertEquals(withoutCode?.[0], { ...route, "http.response.status_code": 401, "error.type": "_OTHER" });
});

Deno.test("serverMetrics() measures the calls of the store, and counts failures, retries and slow operations", async () => {
  const { app, samples } = measured(scripted("Hello!"), { store: durable(memory().journal) });
  await eventsOf(post(app, "/runs", { prompt: "Hi" }));
  await app.settled();
  const operation = { "jizai.operation": "append" };
  const durations = samples.filter(([name]) => name === "jizai.server.store.duration");
  assert(durations.length > 1 && durations.every(([, , seconds]) => seconds < 1));
  assertEquals(durations[0]?.[1], operation);
  assertEquals(of(samples, "jizai.server.store.failures"), []);
  const slow = { operation: "append", milliseconds: 1_000 } as const;
  const facts = samplesOf(
    { type: "store.called", ...slow, outcome: "deadline" },
    { type: "store.slow", ...slow },
    { type: "store.retried", operation: "append" },
    { type: "store.called", ...slow, outcome: "ok" },
    { type: "store.recovered", ...slow },
  );
  assertEquals(facts, [
    ["jizai.server.store.duration", operation, 1],
    ["jizai.server.store.failures", { ...operation, "error.type": "deadline" }, 1],
    ["jizai.server.store.slow", operation, 1],
    ["jizai.server.store.retries", operation, 1],
    ["jizai.server.store.duration", operation, 1],
    ["jizai.server.store.slow", operation, -1],
  ]);
});

Deno.test("serverMetrics() counts each token of a model once, and its cost, and names the owner only if asked", async () => {
  const answer = { text: "Hello!", usage: { input: 1_000, output: 100, cached: 300, cacheWrite: 200, reasoning: 40 } };
  const prices = { scripted: { input: 1, output: 10, cached: 0.1, cacheWrite: 2 } };
  for (const byOwner of [false, true]) {
    const { app, samples } = measured(scripted(answer), { prices, byOwner, owner: () => "ada" });
    await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    const labels = { "gen_ai.request.model": "scripted", ...(byOwner && { "jizai.owner": "ada" }) };
    const counts = { input: 500, cache_read: 300, cache_write: 200, output: 60, reasoning: 40 };
    assertEquals(
      of(samples, "jizai.server.tokens"),
      Object.entries(counts).map(([type, count]) => [{ ...labels, "gen_ai.token.type": type }, count]),
    );
    assertEquals(of(samples, "jizai.server.cost"), [[labels, (500 + 300 * 0.1 + 200 * 2 + 100 * 10) / 1_000_000]]);
  }
});

Deno.test("serverMetrics() records no cost for a model without a price, also for one that is named after a member of objects", async () => {
  for (const id of ["scripted", "toString"]) {
    const { app, samples } = measured({ ...scripted({ text: "Hi", usage: { input: 1, output: 1 } }), id }, {
      prices: {},
    });
    await eventsOf(post(app, "/runs", { prompt: "Hi" }));
    assertEquals(of(samples, "jizai.server.tokens").length, 2);
    assertEquals(of(samples, "jizai.server.cost"), []);
  }
});

Deno.test("serverMetrics() refuses an option that it does not have, and a price that is no number of 0 or more", () => {
  const create = (options: object) => () => serverMetrics(recorder().api, options);
  assertThrows(create({ price: {} }), TypeError, 'Cannot create serverMetrics(): there is no option "price"');
  for (const price of [{ input: 1 }, { input: 1, output: -1 }, { input: 1, output: 1, cached: NaN }]) {
    const expected = "Cannot create serverMetrics(): expected a number of 0 or more as";
    assertThrows(create({ prices: { scripted: price } }), RangeError, expected);
  }
  create({ prices: { scripted: { input: 0, output: 0 } }, byOwner: true })();
});

Deno.test("the table of the page names each metric of the list", async () => {
  const page = await Deno.readTextFile("examples/guides/metrics.md");
  const [, table = ""] = page.split("## The metrics\n\n")[1]?.split(/^(\|[^]*?\|)\n\n/) ?? [];
  const rows = table.split("\n").slice(2).map((row) => row.split("|").slice(1, -1).map((cell) => cell.trim()));
  const kinds = { gauge: "gauge", counter: "counter", upDownCounter: "up-down counter", histogram: "histogram" };
  const listed = serverMetricList.map(({ name, instrument, unit, description, attributes }: ServerMetric) => [
    `\`${name}\``,
    unit === "s" ? `${kinds[instrument]}, seconds` : kinds[instrument],
    attributes.map((attribute) => `\`${attribute}\``).join(", "),
    description.replace(/\.$/, ""),
  ]);
  assertEquals(rows, listed);
});

Deno.test("deno task dashboard reproduces the committed dashboard, which has a panel for each metric", async () => {
  assertEquals(await Deno.readTextFile(target), dashboardText());
  const panels = dashboard().panels.filter((panel) => "targets" in panel);
  assertEquals(panels.length, serverMetricList.length);
});
