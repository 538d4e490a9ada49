/**
 * The metrics of a process, for Prometheus, and those of all processes, for the page.
 *
 * @module
 */
import { type ServerMetric, serverMetricList, serverMetrics } from "@jizai/jizai/middleware/server_metrics";
import { PrometheusExporter, PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { prometheusName, titleOf } from "./dashboard.ts";
import type { Target } from "./proxy.ts";

/** Prices for a million tokens. */
const prices = { "rule-based": { input: 3, output: 15 } };

/** Creates the metrics of a process. `text()` returns them as Prometheus reads them. */
export function processMetrics() {
  const reader = new PrometheusExporter({ preventServerStart: true });
  const { observe, watch } = serverMetrics({ metrics: new MeterProvider({ readers: [reader] }) }, { prices });
  const serializer = new PrometheusSerializer();
  const text = async () => serializer.serialize((await reader.collect()).resourceMetrics);
  return { observe, watch, text };
}

/** A value of a metric in a process. */
export interface Reading {
  readonly process: string;
  /** The values of the attributes. */
  readonly labels: readonly string[];
  /** The value, or the sum of the values of a histogram. */
  readonly value: number;
  /** The number of values of a histogram. */
  readonly count?: number;
}

/** A metric with its values in all processes. */
export interface Measured extends ServerMetric {
  readonly title: string;
  readonly readings: readonly Reading[];
}

/** Reads the metrics of the processes that serve. One that dies meanwhile is left out. */
export async function readMetrics(targets: readonly Target[]): Promise<readonly Measured[]> {
  const read = await Promise.all(targets.map(async ({ name, url }) => {
    try {
      return { process: name, samples: samplesIn(await (await fetch(`${url}/metrics`)).text()) };
    } catch (error) {
      if (error instanceof TypeError) return { process: name, samples: [] }; // there is no connection
      throw error;
    }
  }));
  return serverMetricList.map((metric) => ({
    ...metric,
    title: titleOf(metric),
    readings: read.flatMap(({ process, samples }) => readingsOf(metric, samples).map((each) => ({ process, ...each }))),
  }));
}

/** A line of the text that Prometheus reads. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses the text that Prometheus reads. */
function samplesIn(text: string): readonly Sample[] {
  return Array.from(text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm), ([, name = "", labels = "", value = ""]) => ({
    name,
    labels: Object.fromEntries(
      Array.from(labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g), ([, label = "", escaped]) => [label, `${escaped}`]),
    ),
    value: Number(value),
  }));
}

/** Returns the values of a metric, one for each combination of its attributes. */
function readingsOf({ name, instrument, attributes }: ServerMetric, samples: readonly Sample[]) {
  const ending = { gauge: "", upDownCounter: "", counter: "_total", histogram: "_sum" }[instrument];
  const known = prometheusName(name);
  const of = (ending: string) => samples.filter((sample) => sample.name === known + ending);
  const counts = of("_count");
  return of(ending).map(({ labels, value }, index) => {
    const count = counts[index]?.value; // in the same order
    const values = attributes.flatMap((attribute) => labels[prometheusName(attribute)] ?? []);
    return { labels: values, value, ...(count !== undefined && { count }) };
  });
}
