/**
 * Records the metrics of a server: its load, its runs, its refused requests, its store, and the tokens and the cost of its models.
 *
 * @module
 */
import type { Usage } from "../../mod.ts";
import { costOf, expectNames, type Price } from "../../src/core/kit.ts";
import type { ServerFact, ServerStats, StateBefore } from "../../src/http/facts.ts";

export type { Price, ServerFact, ServerStats };

// The list of the metrics, of which the instruments, the dashboard and the table of the guide are made.

/** A metric of a server. */
export interface ServerMetric {
  /** The part of the server that it is about. */
  readonly part: "load" | "runs" | "requests" | "store" | "models";
  /** Name of the metric. */
  readonly name: string;
  /** A gauge is read from `app.stats()`. A counter grows, an up-down counter also shrinks, and a histogram counts values by size. */
  readonly instrument: "gauge" | "counter" | "upDownCounter" | "histogram";
  /** Unit, as UCUM writes it. */
  readonly unit: string;
  /** One sentence. */
  readonly description: string;
  /** Names of the attributes. */
  readonly attributes: readonly string[];
}

/** The upper bounds of the buckets of the histograms, in seconds: from 1 millisecond to 17 minutes. */
const bounds: readonly number[] = Array.from({ length: 11 }, (_, power) => 4 ** power / 1_000);

/** The metrics of a server. The attribute `jizai.owner` is recorded only with `byOwner`. */
export const serverMetricList = [
  {
    part: "load",
    name: "jizai.server.runs",
    instrument: "gauge",
    unit: "{run}",
    description: "Runs that the process executes.",
    attributes: [],
  },
  {
    part: "load",
    name: "jizai.server.streams",
    instrument: "gauge",
    unit: "{stream}",
    description: "Open streams: responses that send events.",
    attributes: [],
  },
  {
    part: "load",
    name: "jizai.server.followers",
    instrument: "gauge",
    unit: "{stream}",
    description: "Open streams that read a record: a client has reconnected, or follows a run of another process.",
    attributes: [],
  },
  {
    part: "load",
    name: "jizai.server.queued",
    instrument: "gauge",
    unit: "{prompt}",
    description: "Prompts that wait for their sessions.",
    attributes: [],
  },
  {
    part: "load",
    name: "jizai.server.waiting",
    instrument: "gauge",
    unit: "{event}",
    description: "Events that wait until they are stored.",
    attributes: [],
  },
  {
    part: "load",
    name: "jizai.server.bytes",
    instrument: "gauge",
    unit: "By",
    description: "Bytes that the runs hold, as `capacity.bytes` estimates them.",
    attributes: [],
  },
  {
    part: "runs",
    name: "jizai.server.started",
    instrument: "counter",
    unit: "{run}",
    description: "Runs that have begun or continued, by their cause.",
    attributes: ["jizai.cause"],
  },
  {
    part: "runs",
    name: "jizai.server.duration",
    instrument: "histogram",
    unit: "s",
    description: "Time from the start of a run to its end, its pause or its hand-over.",
    attributes: ["jizai.status"],
  },
  {
    part: "runs",
    name: "jizai.server.paused",
    instrument: "counter",
    unit: "{run}",
    description: "Runs that have paused for a person.",
    attributes: [],
  },
  {
    part: "runs",
    name: "jizai.server.continued",
    instrument: "counter",
    unit: "{run}",
    description: "Runs that have continued, by their state before: paused, lost (a recovery) or handed-over.",
    attributes: ["jizai.before"],
  },
  {
    part: "runs",
    name: "jizai.server.lease_lag",
    instrument: "histogram",
    unit: "s",
    description: "Time from the end of a lost run's lease to its recovery.",
    attributes: [],
  },
  {
    part: "runs",
    name: "jizai.server.handed_over",
    instrument: "counter",
    unit: "{run}",
    description: "Runs that the process has handed over to another one.",
    attributes: [],
  },
  {
    part: "requests",
    name: "jizai.server.refused",
    instrument: "counter",
    unit: "{request}",
    description: "Requests that were refused or failed, by the code of the response.",
    attributes: ["http.route", "http.response.status_code", "error.type"],
  },
  {
    part: "store",
    name: "jizai.server.store.duration",
    instrument: "histogram",
    unit: "s",
    description: "Time of a call of the store.",
    attributes: ["jizai.operation"],
  },
  {
    part: "store",
    name: "jizai.server.store.failures",
    instrument: "counter",
    unit: "{call}",
    description: "Calls of the store that failed or reached the deadline.",
    attributes: ["jizai.operation", "error.type"],
  },
  {
    part: "store",
    name: "jizai.server.store.retries",
    instrument: "counter",
    unit: "{call}",
    description: "Calls of the store that were repeated.",
    attributes: ["jizai.operation"],
  },
  {
    part: "store",
    name: "jizai.server.store.slow",
    instrument: "upDownCounter",
    unit: "{operation}",
    description: "Operations of the store that have not succeeded for a second.",
    attributes: ["jizai.operation"],
  },
  {
    part: "models",
    name: "jizai.server.tokens",
    instrument: "counter",
    unit: "{token}",
    description: "Tokens of requests to models. Each token has one type.",
    attributes: ["gen_ai.request.model", "gen_ai.token.type", "jizai.owner"],
  },
  {
    part: "models",
    name: "jizai.server.cost",
    instrument: "counter",
    unit: "{currency}",
    description: "Cost of requests to models with a price, in the currency of the prices.",
    attributes: ["gen_ai.request.model", "jizai.owner"],
  },
] as const satisfies readonly ServerMetric[];

/** A metric of the list. */
type Listed = (typeof serverMetricList)[number];

/** The name of a metric that is recorded when something happens. */
type RecordedName = Exclude<Listed, { readonly instrument: "gauge" }>["name"];

/** Records a value of a metric. */
type Measure = (name: RecordedName, value: number, attributes?: MetricAttributes) => void;

/** Attributes of a value. */
export type MetricAttributes = Readonly<Record<string, string | number>>;

/** A function that records a value. */
export type RecordValue = (value: number, attributes?: MetricAttributes) => void;

/** Describes an instrument. */
export interface InstrumentOptions {
  /** Unit, as UCUM writes it. */
  readonly unit: string;
  /** One sentence. */
  readonly description: string;
  /** The upper bounds of the buckets of a histogram. */
  readonly advice?: { readonly explicitBucketBoundaries: number[] };
}

/** A meter of OpenTelemetry, as far as it is used. */
export interface Meter {
  /** Creates a counter. */
  readonly createCounter: (name: string, options: InstrumentOptions) => { add: RecordValue };
  /** Creates a counter that shrinks too. */
  readonly createUpDownCounter: (name: string, options: InstrumentOptions) => { add: RecordValue };
  /** Creates a histogram. */
  readonly createHistogram: (name: string, options: InstrumentOptions) => { record: RecordValue };
  /** Creates a gauge, which is read when metrics are collected. */
  readonly createObservableGauge: (
    name: string,
    options: InstrumentOptions,
  ) => { addCallback: (read: (result: { observe: RecordValue }) => void) => void };
}

/** The part of the module `@opentelemetry/api` that is used. `{ metrics }` with a `MeterProvider` is enough. */
export interface Meters {
  /** Creates meters. */
  readonly metrics: { readonly getMeter: (name: string) => Meter };
}

/** Creates the instruments of the list. Returns the function that records their values. `stats` returns the present values of the gauges. */
function instrumentsOf({ metrics }: Meters, stats: () => ServerStats): Measure {
  const meter = metrics.getMeter("jizai");
  const measures = new Map<string, RecordValue>();
  for (const { name, instrument, unit, description } of serverMetricList) {
    const options = { unit, description };
    if (instrument === "gauge") {
      const stat = name.slice("jizai.server.".length) as keyof ServerStats; // a test compares them
      meter.createObservableGauge(name, options).addCallback((result) => result.observe(stats()[stat]));
    } else if (instrument === "histogram") {
      const histogram = meter.createHistogram(name, { ...options, advice: { explicitBucketBoundaries: [...bounds] } });
      measures.set(name, (value, attributes) => histogram.record(value, attributes));
    } else {
      const isMonotonic = instrument === "counter";
      const sum = isMonotonic ? meter.createCounter(name, options) : meter.createUpDownCounter(name, options);
      measures.set(name, (value, attributes) => sum.add(value, attributes));
    }
  }
  return (name, value, attributes) => measures.get(name)?.(value, attributes);
}

// Records the facts of a server.

/** Records that nothing has happened to runs, since Prometheus takes the first value of a time series for no increase. */
function recordZeros(measure: Measure): void {
  measure("jizai.server.paused", 0);
  measure("jizai.server.handed_over", 0);
  const states: Record<StateBefore, true> = { paused: true, lost: true, "handed-over": true };
  for (const before of Object.keys(states)) measure("jizai.server.continued", 0, { "jizai.before": before });
}

/** Returns the tokens of a request by their type. Each token is counted once. */
function tokensByType({ input, output, cached = 0, cacheWrite = 0, reasoning = 0 }: Usage) {
  return {
    input: input - cached - cacheWrite,
    cache_read: cached,
    cache_write: cacheWrite,
    output: output - reasoning,
    reasoning,
  };
}

/** Returns the function that records a fact. */
function recorderOf(measure: Measure, { prices = {}, byOwner = false }: ServerMetricsOptions) {
  function recordUsage({ model, usage, owner }: Extract<ServerFact, { type: "model.used" }>): void {
    const labels = { "gen_ai.request.model": model, ...(byOwner && owner !== undefined && { "jizai.owner": owner }) };
    for (const [type, count] of Object.entries(tokensByType(usage))) {
      if (count > 0) measure("jizai.server.tokens", count, { ...labels, "gen_ai.token.type": type });
    }
    const price = Object.hasOwn(prices, model) ? prices[model] : undefined;
    if (price) measure("jizai.server.cost", costOf(usage, price), labels);
  }

  return (fact: ServerFact): void => {
    switch (fact.type) {
      case "run.started":
        measure("jizai.server.started", 1, { "jizai.cause": fact.cause });
        if (fact.before) measure("jizai.server.continued", 1, { "jizai.before": fact.before });
        if (fact.lag !== undefined) measure("jizai.server.lease_lag", fact.lag / 1_000);
        return;
      case "run.ended":
        measure("jizai.server.duration", fact.milliseconds / 1_000, { "jizai.status": fact.status });
        if (fact.status === "paused") measure("jizai.server.paused", 1);
        if (fact.status === "handed-over") measure("jizai.server.handed_over", 1);
        return;
      case "model.used":
        return recordUsage(fact);
      case "request.refused": {
        const { route, status, code = "_OTHER" } = fact;
        const reason = { "http.route": route, "http.response.status_code": status, "error.type": code };
        return measure("jizai.server.refused", 1, reason);
      }
      case "store.called": {
        const operation = { "jizai.operation": fact.operation };
        measure("jizai.server.store.duration", fact.milliseconds / 1_000, operation);
        if (fact.outcome === "ok") return;
        return measure("jizai.server.store.failures", 1, { ...operation, "error.type": fact.outcome });
      }
      case "store.retried":
        return measure("jizai.server.store.retries", 1, { "jizai.operation": fact.operation });
      case "store.slow":
        return measure("jizai.server.store.slow", 1, { "jizai.operation": fact.operation });
      case "store.recovered":
        return measure("jizai.server.store.slow", -1, { "jizai.operation": fact.operation });
    }
  };
}

// The function `serverMetrics()`, and its options.

/** Options of `serverMetrics()`. */
export interface ServerMetricsOptions {
  /** Prices by the id of the model. Default: none, so that no cost is recorded. */
  readonly prices?: Readonly<Record<string, Price>>;
  /** Records tokens and cost by owner too: each owner is a time series of its own for each model. Default: false. */
  readonly byOwner?: boolean;
}

/** Records the metrics of servers. */
export interface ServerMetrics {
  /** Records the facts of a server: its option `observe`. */
  readonly observe: (fact: ServerFact) => void;
  /** Reads the load of a server when metrics are collected. The loads of several servers are added. */
  readonly watch: (app: { readonly stats: () => ServerStats }) => void;
}

/**
 * Records the metrics of a server with OpenTelemetry: `serverMetricList` has their names, units and attributes. `api` is the module `@opentelemetry/api`;
 * register a provider before. The metrics are those of this process; add them over the processes. No attribute contains content or the id of a run or a session,
 * nor, without `byOwner`, an owner.
 *
 * `observe` is the option of `serve()` that receives the facts, and `watch(app)` reads the load. Tokens are those of every attempt, subagent and summary. Each
 * token has one type, so that the sum over the types is the number of tokens.
 *
 * Throws a `TypeError` for an unknown option, and a `RangeError` for a price that is not a number of 0 or more.
 *
 * ```ts
 * import { agent, serve } from "@jizai/jizai";
 * import { serverMetrics } from "@jizai/jizai/middleware/server_metrics";
 * import { scripted } from "@jizai/jizai/model/scripted";
 * import * as api from "@opentelemetry/api";
 *
 * const metrics = serverMetrics(api, { prices: { scripted: { input: 1, output: 2 } } });
 * const app = serve(agent({ model: scripted("Hello!") }), { observe: metrics.observe });
 * metrics.watch(app);
 * ```
 */
export function serverMetrics(
  api: Meters,
  options: ServerMetricsOptions = {},
): ServerMetrics {
  expectNames("Cannot create serverMetrics()", options, ["prices", "byOwner"]);
  expectPrices(options.prices ?? {});
  const apps = new Set<Parameters<ServerMetrics["watch"]>[0]>();
  const measure = instrumentsOf(api, () => {
    const sum = { runs: 0, streams: 0, followers: 0, queued: 0, waiting: 0, bytes: 0 };
    for (const app of apps) {
      const stats = app.stats();
      for (const stat of Object.keys(sum) as (keyof ServerStats)[]) sum[stat] += stats[stat]; // its only keys
    }
    return sum;
  });
  recordZeros(measure);
  return { observe: recorderOf(measure, options), watch: (app) => void apps.add(app) };
}

/** Throws a `RangeError` unless each price is of numbers of 0 or more. */
function expectPrices(prices: Readonly<Record<string, Price>>): void {
  for (const [model, { input, output, ...others }] of Object.entries(prices)) {
    for (const [key, value] of Object.entries({ input, output, ...others })) {
      if (typeof value === "number" && value >= 0) continue;
      const expected = `expected a number of 0 or more as "${key}" of "${model}", got ${value}`;
      throw new RangeError(`Cannot create serverMetrics(): ${expected}`);
    }
  }
}
