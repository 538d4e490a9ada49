/**
 * Declares the part of `@opentelemetry/api` that is used, so that nothing is imported.
 *
 * @module
 */

/** Attributes of a span or a measurement. */
export interface Attributes {
  /** A value by its name. */
  readonly [name: string]: string | number | boolean | string[] | undefined;
}

/** An OpenTelemetry context, which is passed on unchanged. */
export type Context = object;

/** A span. */
export interface Span {
  /** Adds attributes. */
  setAttributes(attributes: Attributes): unknown;
  /** Sets the status; 2 is an error. */
  setStatus(status: { readonly code: number }): unknown;
  /** Ends the span, now or at a time in milliseconds since 1970. */
  end(time?: number): void;
  /** Returns the ids that identify the span in other processes. */
  spanContext?(): SpanContext;
}

/** The ids of a span, which are passed on unchanged. */
export interface SpanContext {
  /** Id of the trace. */
  readonly traceId: string;
  /** Id of the span. */
  readonly spanId: string;
  /** Flags of the trace, such as whether it is sampled. */
  readonly traceFlags: number;
}

/** Options of a new span. */
export interface SpanOptions {
  /** 0 for work in this process, 2 for a request to another one. */
  readonly kind?: number;
  /** Initial attributes. */
  readonly attributes?: Attributes;
  /** Start in milliseconds since 1970. Default: now. */
  readonly startTime?: number;
}

/** Starts spans. */
export interface Tracer {
  /** Starts a span in `context`. */
  startSpan(name: string, options?: SpanOptions, context?: Context): Span;
}

/** Records the distribution of a value. */
export interface Histogram {
  /** Records one value. */
  record(value: number, attributes?: Attributes, context?: Context): void;
}

/** Options of a histogram. */
export interface HistogramOptions {
  /** Description of the value. */
  readonly description?: string;
  /** Unit of the value. */
  readonly unit?: string;
  /** Upper bounds of the buckets. */
  readonly advice?: { explicitBucketBoundaries?: number[] };
}

/** Creates instruments. */
export interface Meter {
  /** Creates a histogram. */
  createHistogram(name: string, options?: HistogramOptions): Histogram;
}

/**
 * The part of the module `@opentelemetry/api` that is used. The optional functions show whether a provider is registered; without them, every run is
 * recorded.
 */
export interface Telemetry {
  /** Creates tracers and sets the current span. */
  readonly trace: {
    getTracer(name: string): Tracer;
    setSpan(context: Context, span: Span): Context;
  };
  /** Creates meters. */
  readonly metrics: { getMeter(name: string): Meter };
  /** Returns whether the ids of a span are valid. */
  readonly isSpanContextValid?: (context: SpanContext) => boolean;
  /** Returns the meter that records nothing. */
  readonly createNoopMeter?: () => Meter;
  /** Returns and sets the current context, if the platform tracks it. */
  readonly context: {
    active(): Context;
    with<R>(context: Context, work: () => R): R;
  };
}
