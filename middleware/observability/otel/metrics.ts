/**
 * The metrics of `otel()`: one table, and the instruments that are made of it.
 *
 * @module
 */
import type { Attributes, Context, Meter, MetricOptions } from "@opentelemetry/api";

/** A metric: its kind, and how an instrument is made of it. */
interface Metric extends MetricOptions {
  readonly kind: "histogram" | "counter";
}

/** Returns a histogram with `count` bounds, each a multiple of the one before. */
function histogram(unit: string, description: string, [first, factor, count]: readonly [number, number, number]) {
  const explicitBucketBoundaries = Array.from({ length: count }, (_, power) => first * factor ** power);
  return { kind: "histogram", unit, description, advice: { explicitBucketBoundaries } } as const;
}

/** Returns a histogram of seconds, from 10 milliseconds to 82 seconds. */
function seconds(description: string) {
  return histogram("s", description, [0.01, 2, 14]);
}

/** Returns a counter of tokens. */
function tokens(description: string) {
  return { kind: "counter", unit: "{token}", description } as const;
}

/** The metrics, with the names and the bounds of the semantic conventions for generative AI. */
const metrics = {
  "gen_ai.invoke_agent.duration": histogram("s", "Duration of an agent's run, from its start to its end or pause.", [
    0.1,
    2,
    13,
  ]),
  "gen_ai.invoke_agent.inference_calls": histogram("{inference_call}", "Requests to models in a run.", [1, 2, 8]),
  "gen_ai.invoke_agent.tool_calls": histogram("{tool_call}", "Executed calls of tools in a run.", [1, 2, 8]),
  "gen_ai.execute_tool.duration": seconds("Duration of the execution of a tool."),
  "gen_ai.client.inference.duration": seconds("Duration of a request to a model."),
  "gen_ai.client.inference.time_to_first_chunk": seconds("Time from a request to the first chunk of its response."),
  "gen_ai.client.operation.duration": seconds("Duration of an operation on a memory."),
  "gen_ai.client.inference.operation.input_tokens": histogram("{token}", "Input tokens of a request.", [1, 4, 14]),
  "gen_ai.client.inference.operation.output_tokens": histogram("{token}", "Output tokens of a request.", [1, 4, 14]),
  "gen_ai.client.inference.usage.input_tokens": tokens("Input tokens used, including cached ones."),
  "gen_ai.client.inference.usage.output_tokens": tokens("Output tokens used, including those of reasoning."),
  "gen_ai.client.inference.usage.cache_read.input_tokens": tokens("Input tokens read from the provider's cache."),
  "gen_ai.client.inference.usage.cache_write.input_tokens": tokens("Input tokens written to the provider's cache."),
  "gen_ai.client.inference.usage.reasoning.output_tokens": tokens("Output tokens used for reasoning."),
} as const satisfies { readonly [name: string]: Metric };

/** The name of a metric. */
export type MetricName = keyof typeof metrics;

/** Records a value of a metric. */
export type Measure = (name: MetricName, value: number, attributes: Attributes, context: Context) => void;

/** Creates the instruments, and returns the function that records their values. */
export function measureWith(meter: Meter): Measure {
  const instruments = new Map<string, (value: number, attributes: Attributes, context: Context) => void>();
  for (const [name, { kind, ...options }] of Object.entries<Metric>(metrics)) {
    if (kind === "counter") {
      const counter = meter.createCounter(name, options);
      instruments.set(name, (value, attributes, context) => counter.add(value, attributes, context));
    } else {
      const histogram = meter.createHistogram(name, options);
      instruments.set(name, (value, attributes, context) => histogram.record(value, attributes, context));
    }
  }
  return (name, value, attributes, context) => instruments.get(name)?.(value, attributes, context);
}
