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
  MetricsAPI,
  Span,
  SpanContext,
  SpanKind,
  TraceAPI,
} from "@opentelemetry/api";
import { type Measure, measureWith, type MetricName } from "./metrics.ts";
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
