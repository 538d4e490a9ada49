/**
 * Records operations as spans and metrics.
 *
 * @module
 */
import type {
  Attributes,
  Context,
  ContextAPI,
  Meter,
  MetricOptions,
  MetricsAPI,
  Span,
  SpanContext,
  SpanKind,
  TraceAPI,
} from "@opentelemetry/api";
import { isInterrupt, type Usage } from "../../../mod.ts";
import { parseTraceparent } from "../../../src/core/kit.ts";

/**
 * The part of the module `@opentelemetry/api` that is used. The optional functions show whether a provider is registered; without them, every run is
 * recorded.
 */
export interface Telemetry {
  /** Creates tracers, and reads and sets the current span. */
  readonly trace: Pick<TraceAPI, "getTracer" | "setSpan" | "getSpanContext" | "setSpanContext">;
  /** Creates meters. */
  readonly metrics: Pick<MetricsAPI, "getMeter">;
  /** Returns and sets the current context, if the platform tracks it. */
  readonly context: Pick<ContextAPI, "active" | "with">;
  /** Returns whether the ids of a span are valid. */
  readonly isSpanContextValid?: (context: SpanContext) => boolean;
  /** Returns the meter that records nothing. */
  readonly createNoopMeter?: () => Meter;
}

// The metrics: one table, and the instruments that are made of it.

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
type MetricName = keyof typeof metrics;

/** Records a value of a metric. */
type Measure = (name: MetricName, value: number, attributes: Attributes, context: Context) => void;

/** Creates the instruments, and returns the function that records their values. */
function measureWith(meter: Meter): Measure {
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

// Records operations as spans, durations and tokens.

/** An operation that takes time. */
export interface Operation {
  /** Name of the span. */
  readonly name: string;
  /** Whether another system does the work. Default: false. */
  readonly isRemote?: boolean;
  /** Metric of the duration. Default: none. */
  readonly duration?: MetricName;
  /** Attributes of the span and of the metrics. */
  readonly labels: Attributes;
  /** Further attributes of the span. */
  readonly details: Attributes;
  /** The span that did the work before, as a `traceparent`. Default: none. */
  readonly continues?: string | undefined;
}

/** Outcome of an operation. */
export interface Outcome {
  /** Further attributes of the span and of the metrics. */
  readonly labels?: Attributes;
  /** Further attributes of the span. */
  readonly details?: Attributes;
  /** Tokens used, if the operation is a request to a model. */
  readonly tokens?: Usage;
  /** Values of metrics, with the labels of the operation. */
  readonly measured?: { readonly [name in MetricName]?: number };
  /** Kind of the error; missing if the operation succeeded. */
  readonly error?: string | undefined;
}

/** An operation in progress. */
export interface ActiveOperation {
  /** Span of the operation. */
  readonly span: Span;
  /** Context for the work of the operation. */
  readonly context: Context;
  /** Ends the operation. Later calls are ignored. */
  end(outcome?: Outcome): void;
}

/** Records operations. */
export type Recorder = ReturnType<typeof recorderOf>;

/** Creates a recorder of spans and metrics. */
export function recorderOf({ trace, metrics, context, isSpanContextValid, createNoopMeter }: Telemetry) {
  const tracer = trace.getTracer("jizai");
  const meter = metrics.getMeter("jizai");
  const measure = measureWith(meter);

  return {
    /** Starts an operation. */
    start({ name, isRemote, duration, labels, details, continues }: Operation, parent: Context): ActiveOperation {
      const before = parseTraceparent(continues);
      const span = tracer.startSpan(name, {
        kind: kinds[isRemote ? "client" : "internal"],
        attributes: { ...labels, ...details },
        ...(before && { links: [{ context: { ...before, isRemote: true } }] }),
      }, parent);
      const context = trace.setSpan(parent, span);
      const start = performance.now();
      let ended = false;
      return {
        span,
        context,
        end(outcome = {}) {
          if (ended) return;
          ended = true;
          end(span, outcome);
          const known = { ...labels, ...outcome.labels };
          if (duration) {
            measure(duration, (performance.now() - start) / 1_000, { ...known, ...errorOf(outcome) }, context);
          }
          for (const [name, value] of Object.entries(outcome.measured ?? {})) {
            measure(name as MetricName, value, known, context); // its only keys
          }
          if (outcome.tokens) measureTokens(measure, outcome.tokens, known, context);
        },
      };
    },
    /** Returns the current context, or one that continues the trace of `traceparent` if the current span is of another trace. */
    contextOf(traceparent: string | undefined): Context {
      const current = context.active();
      const remote = parseTraceparent(traceparent);
      if (!remote || trace.getSpanContext(current)?.traceId === remote.traceId) return current;
      return trace.setSpanContext(current, { ...remote, isRemote: true });
    },
    /** Returns whether no provider records spans or metrics. Without one, a span repeats the ids of its parent. */
    isIdle(span: Span, parent: Context): boolean {
      if (meter !== createNoopMeter?.()) return false;
      const known = span.spanContext(); // valid also for an unsampled span, whose siblings may be sampled
      return isSpanContextValid?.(known) === false || known.spanId === trace.getSpanContext(parent)?.spanId;
    },
    /** Records a completed operation that took `ms` milliseconds. */
    record(name: string, outcome: Outcome, parent: Context, ms = 0): void {
      const startTime = performance.timeOrigin + performance.now() - ms;
      end(tracer.startSpan(name, { kind: kinds.internal, startTime }, parent), outcome);
    },
  };
}

/** The kinds of spans: values of an enum of `@opentelemetry/api`, whose types alone are imported. */
const kinds: { readonly [kind in "internal" | "client"]: SpanKind } = { internal: 0, client: 2 };

/** Counts the tokens of a request, if the provider has reported them. It does not tell those of texts from those of files. */
function measureTokens(measure: Measure, usage: Usage, labels: Attributes, context: Context): void {
  const { input, output, cached, cacheWrite, reasoning } = usage;
  if (input + output === 0) return;
  measure("gen_ai.client.inference.operation.input_tokens", input, labels, context);
  measure("gen_ai.client.inference.operation.output_tokens", output, labels, context);
  const counts = {
    "input_tokens": input,
    "output_tokens": output,
    "cache_read.input_tokens": cached,
    "cache_write.input_tokens": cacheWrite,
    "reasoning.output_tokens": reasoning,
  } as const;
  const counted = { ...labels, "gen_ai.token.modality": "unknown" };
  for (const [name, count] of Object.entries(counts)) {
    if (count === undefined) continue;
    measure(`gen_ai.client.inference.usage.${name as keyof typeof counts}`, count, counted, context); // its only keys
  }
}

function end(span: Span, outcome: Outcome): void {
  if (outcome.error !== undefined) span.setStatus({ code: 2 });
  span.setAttributes({ ...outcome.labels, ...outcome.details, ...errorOf(outcome) });
  span.end();
}

function errorOf({ error }: Outcome): Attributes {
  return error === undefined ? {} : { "error.type": error };
}

/** Returns the outcome of an operation that threw. An interrupt is not an error. */
export function outcomeOfError(error: unknown): Outcome {
  return isInterrupt(error) ? {} : { error: kindOf(error) };
}

/** Returns the HTTP status of a provider's error, or the name of an error; never its message. */
export function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return "status" in error && typeof error.status === "number" ? String(error.status) : error.name;
}
