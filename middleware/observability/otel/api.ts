/**
 * What is asked of `@opentelemetry/api`: said here as types, so that nothing is imported.
 *
 * @module
 */

/** What a span, or a measurement, says of itself. */
export interface Attributes {
  /** One thing, by its name. */
  readonly [name: string]: string | number | boolean | string[] | undefined;
}

/** Where a span belongs: OpenTelemetry's own, and passed on as it is. */
export type Context = object;

/** A piece of work. */
export interface Span {
  /** Says more of it. */
  setAttributes(attributes: Attributes): unknown;
  /** Says how it ended: 2 is an error. */
  setStatus(status: { readonly code: number }): unknown;
  /** Ends it: now, or at a time in milliseconds since 1970. */
  end(time?: number): void;
  /** By which it is known elsewhere. */
  spanContext?(): SpanContext;
}

/** By which a span is known elsewhere: OpenTelemetry's own, and passed on as it is. */
export interface SpanContext {
  /** Of all that belongs together. */
  readonly traceId: string;
  /** Its own. */
  readonly spanId: string;
  /** Whether it is sampled. */
  readonly traceFlags: number;
}

/** How a span begins. */
export interface SpanOptions {
  /** 0: within this process; 2: it asks another one. */
  readonly kind?: number;
  /** What it says of itself. */
  readonly attributes?: Attributes;
  /** In milliseconds since 1970. Default: now. */
  readonly startTime?: number;
}

/** Begins spans. */
export interface Tracer {
  /** Begins one, in `context`. */
  startSpan(name: string, options?: SpanOptions, context?: Context): Span;
}

/** Counts how often values come up. */
export interface Histogram {
  /** Counts one. */
  record(value: number, attributes?: Attributes, context?: Context): void;
}

/** How a histogram is made. */
export interface HistogramOptions {
  /** What it counts. */
  readonly description?: string;
  /** In which unit. */
  readonly unit?: string;
  /** Where its buckets end. */
  readonly advice?: { explicitBucketBoundaries?: number[] };
}

/** Makes instruments. */
export interface Meter {
  /** Makes a histogram. */
  createHistogram(name: string, options?: HistogramOptions): Histogram;
}

/** The module `@opentelemetry/api`, as far as it is used. What may be missing tells whether anybody records; without it, everything is measured. */
export interface Telemetry {
  /** Spans. */
  readonly trace: {
    getTracer(name: string): Tracer;
    setSpan(context: Context, span: Span): Context;
  };
  /** Measurements. */
  readonly metrics: { getMeter(name: string): Meter };
  /** Whether a span is known elsewhere. */
  readonly isSpanContextValid?: (context: SpanContext) => boolean;
  /** The meter of who records no measurements. */
  readonly createNoopMeter?: () => Meter;
  /** What is going on, where the platform can tell. */
  readonly context: {
    active(): Context;
    with<R>(context: Context, work: () => R): R;
  };
}
