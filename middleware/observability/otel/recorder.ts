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
  TraceAPI,
} from "@opentelemetry/api";
import { isInterrupt, noUsage, type Usage } from "../../../mod.ts";

/**
 * The part of the module `@opentelemetry/api` that is used. The optional functions show whether a provider is registered; without them, every run is
 * recorded.
 */
export interface Telemetry {
  /** Creates tracers and sets the current span. */
  readonly trace: Pick<TraceAPI, "getTracer" | "setSpan">;
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
  /** Name of the operation in the conventions. */
  readonly name: "invoke_agent" | "chat" | "execute_tool";
  /** Name of the agent, the model or the tool. */
  readonly target?: string | undefined;
  /** Attributes of the span and of the metrics. */
  readonly labels: Attributes;
  /** Further attributes of the span. */
  readonly details: Attributes;
}

/** Outcome of an operation. */
export interface Outcome {
  /** Further attributes of the span and of the metrics. */
  readonly labels?: Attributes;
  /** Further attributes of the span. */
  readonly details?: Attributes;
  /** Tokens used, if known. */
  readonly tokens?: Usage;
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

/** Creates a recorder of spans, durations and tokens. */
export function recorderOf({ trace, metrics, isSpanContextValid, createNoopMeter }: Telemetry) {
  const tracer = trace.getTracer("jizai");
  const meter = metrics.getMeter("jizai");
  const duration = meter.createHistogram("gen_ai.client.operation.duration", {
    description: "GenAI operation duration.",
    unit: "s",
    advice: { explicitBucketBoundaries: Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power) },
  });
  const usage = meter.createHistogram("gen_ai.client.token.usage", {
    description: "Number of input and output tokens used.",
    unit: "{token}",
    advice: { explicitBucketBoundaries: Array.from({ length: 14 }, (_, power) => 4 ** power) },
  });

  return {
    /** Starts an operation. */
    start({ name, target, labels, details }: Operation, parent: Context): ActiveOperation {
      const common = { "gen_ai.operation.name": name, ...labels };
      const span = tracer.startSpan(target === undefined ? name : `${name} ${target}`, {
        kind: name === "chat" ? 2 : 0,
        attributes: { ...common, ...details },
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
          const seconds = (performance.now() - start) / 1_000;
          const { labels, tokens = noUsage } = outcome;
          duration.record(seconds, { ...common, ...labels, ...errorOf(outcome) }, context);
          if (tokens.input + tokens.output === 0) return;
          usage.record(tokens.input, { ...common, ...labels, "gen_ai.token.type": "input" }, context);
          usage.record(tokens.output, { ...common, ...labels, "gen_ai.token.type": "output" }, context);
        },
      };
    },
    /** Returns whether no provider records spans or metrics. */
    isIdle(span: Span): boolean {
      const known = span.spanContext(); // valid also for an unsampled span, whose siblings may be sampled
      return meter === createNoopMeter?.() && isSpanContextValid?.(known) === false;
    },
    /** Records a completed operation that took `ms` milliseconds. */
    record(name: string, outcome: Outcome, parent: Context, ms = 0): void {
      const startTime = performance.timeOrigin + performance.now() - ms;
      end(tracer.startSpan(name, { kind: 0, startTime }, parent), outcome);
    },
  };
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
