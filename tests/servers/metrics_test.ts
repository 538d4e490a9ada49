/**
 * The metrics of servers, as a real Prometheus reads them.
 *
 * @module
 */
import { agent, memory, serve } from "@jizai/jizai";
import type { ServerFact } from "@jizai/jizai/facts";
import { serverMetricList } from "@jizai/jizai/middleware/server_metrics";
import { scripted } from "@jizai/jizai/model/scripted";
import { durable } from "@jizai/jizai/session/durable";
import { assertEquals } from "@std/assert";
import { prometheusName, queriesOf } from "../../examples/fleet/dashboard.ts";
import { type Measured, processMetrics } from "../../examples/fleet/metrics.ts";
import { folder } from "../platforms/folder.ts";
import { started } from "../platforms/program.ts";
import { eventsOf, first, framesOf, piecesOf, post, refusalOf } from "../support/requests.ts";
import { isPrometheusMissing, type PrometheusServer, prometheusServer } from "./prometheus_server.ts";

const ignore = await isPrometheusMissing();
const note = ignore ? " (left out: Prometheus is not installed; `apt-get install prometheus`)" : "";

/** Asks for a value until it is the expected one, for at most 15 seconds, and returns the last one. */
async function settledValue(prometheus: PrometheusServer, query: string, expected: number) {
  let value: number | undefined;
  for (let tries = 0; tries < 150 && value !== expected; tries++) {
    if (tries > 0) await new Promise((resolve) => setTimeout(resolve, 100));
    value = await prometheus.value(query);
  }
  return value;
}

/** Facts of every kind, each of which changes a metric. */
const place = { run: "r", session: "s", cause: "recovery" } as const;
const ended = { type: "run.ended", ...place, milliseconds: 2_000, usage: { input: 0, output: 0 } } as const;
const facts: readonly ServerFact[] = [
  { type: "run.started", ...place, before: "lost", lag: 1_500 },
  { type: "run.started", ...place, before: "paused" },
  { ...ended, status: "paused" },
  { ...ended, status: "handed-over" },
  { type: "model.used", ...place, model: "rule-based", usage: { input: 1_000, output: 100, cached: 400 } },
  { type: "request.refused", route: "POST /runs", status: 503, code: "capacity" },
  { type: "store.called", operation: "append", milliseconds: 20, outcome: "failed" },
  { type: "store.retried", operation: "append" },
];

/** Tests that Prometheus has each metric of the list and no other, and that each query of the dashboard and of the page has values. */
async function checkQueries(): Promise<void> {
  const { observe, watch, text } = processMetrics();
  const served = serve(agent({ model: scripted("Hello!") }), { store: durable(memory().journal), observe });
  watch(served);
  await eventsOf(post(served, "/runs", { prompt: "Hi" }));
  await served.settled();
  observe({ type: "store.slow", operation: "append", milliseconds: 1_000 });
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async () => {
    for (const fact of facts) observe(fact); // so that there is more at each scrape
    return new Response(await text(), { headers: { "content-type": "text/plain; version=0.0.4" } });
  });
  await using prometheus = await prometheusServer({
    static_configs: [{ targets: [`127.0.0.1:${server.addr.port}`] }],
  });
  const last = 'jizai_server_store_duration_count{jizai_operation="append"}';
  while ((await prometheus.value(last) ?? 0) < 8) await new Promise((resolve) => setTimeout(resolve, 100));

  const names = await prometheus.names();
  const endings = { gauge: "", upDownCounter: "", counter: "_total", histogram: "_bucket" };
  const listed = serverMetricList.map(({ name, instrument }) => prometheusName(name) + endings[instrument]);
  assertEquals(listed.filter((name) => !names.includes(name)), []);
  const known = listed.concat(listed.flatMap((name) => {
    const [, base] = /^(.*)_bucket$/.exec(name) ?? [];
    return base === undefined ? [] : [`${base}_sum`, `${base}_count`];
  }));
  assertEquals(names.filter((name) => name.startsWith("jizai_") && !known.includes(name)), []);

  for (const metric of serverMetricList) {
    for (const { expr } of queriesOf(metric)) {
      const values = await prometheus.query(expr.replace("$__rate_interval", "2s").replace("$instance", ".*"));
      const largest = Math.max(...values.map(({ value }) => value).filter(Number.isFinite)); // a histogram without new values has none
      assertEquals(
        metric.instrument === "gauge" ? largest === 0 : largest > 0,
        true,
        `${expr}: ${JSON.stringify(values)}`,
      );
    }
  }
  const page = await Deno.readTextFile("examples/guides/metrics.md");
  const queries = Array.from(page.matchAll(/^\| [^|]*\? +\| `([^`]*)` +\|$/gm), ([, query = ""]) => query);
  assertEquals(queries.length, 6);
  for (const query of queries) {
    const [value] = await prometheus.query(query.replace(/\[\d+[mhd]\]/g, "[2s]").replace(/ > \d+$/, ""));
    assertEquals(Number.isFinite(value?.value), true, query);
  }
}

/** Tests that Prometheus discovers the processes of the fleet, and reads runs, refusals, tokens and a recovery. */
async function checkFleet(): Promise<void> {
  await using disk = await folder();
  await using program = await started("start:fleet", { FLEET_FILE: `${disk.path}/fleet.db`, PACE: "300" });
  await using prometheus = await prometheusServer({
    http_sd_configs: [{ url: `${program.url}/fleet/targets`, refresh_interval: "1s" }],
  });
  const expectValue = async (query: string, expected: number) =>
    assertEquals(await settledValue(prometheus, query, expected), expected, query);

  await expectValue("count(jizai_server_runs)", 3);
  const events = await eventsOf(post(program, "/runs", { prompt: "Count the kettles" }));
  const { usage } = first("run.finished", events);
  await expectValue('sum(jizai_server_tokens_total{gen_ai_token_type="input"})', usage.input);
  await expectValue('sum(jizai_server_tokens_total{gen_ai_token_type="output"})', usage.output);
  const slow = piecesOf(await post(program, "/runs", { prompt: "Count the lanterns and deliver 2 hooks" }));
  const [{ run, session } = { run: "", session: "" }] = framesOf(await slow.until("tool.progress"))
    .filter((event) => event.type === "run.started");
  const [status] = await refusalOf(post(program, "/runs", { prompt: "More", session }));
  assertEquals(status, 409);
  await expectValue("sum(jizai_server_runs)", 1);
  await expectValue('sum(jizai_server_started_total{jizai_cause="prompt"})', 2);
  await expectValue('sum(jizai_server_duration_count{jizai_status="done"})', 1);
  await expectValue('sum(jizai_server_refused_total{error_type="busy",http_route="POST /runs"})', 1);
  const drawn: readonly Measured[] = await (await program.request("/fleet/metrics")).json();
  const [refused] = drawn.filter(({ title }) => title === "Refused").flatMap(({ readings }) => readings);
  assertEquals([refused?.labels, refused?.value], [["POST /runs", "409", "busy"], 1]);
  const members: readonly { name: string; runs: readonly string[] }[] = await (await program.request("/fleet"))
    .json();
  const holder = members.find(({ runs }) => runs.includes(run))?.name;
  await (await program.request(`/fleet/${holder}/kill`, { method: "POST" })).body?.cancel();
  await slow.rest().catch(() => ""); // its connection is cut
  await expectValue('sum(jizai_server_continued_total{jizai_before="lost"})', 1);
  await expectValue("sum(jizai_server_lease_lag_count)", 1);
  await expectValue("count(jizai_server_runs)", 2);
}

Deno.test({
  name: `Prometheus has values for each metric, each query of the dashboard and of the page, and the fleet${note}`,
  ignore,
  async fn() {
    await Promise.all([checkQueries(), checkFleet()]); // Prometheus looks for targets five seconds after its start
  },
});
