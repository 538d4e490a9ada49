/**
 * A telemetry that records in memory, without a platform's context: the middleware must set the parents of spans.
 *
 * @module
 */
import type { Telemetry } from "@jizai/jizai/middleware/otel";
import * as api from "@opentelemetry/api";

/** A recorded span. */
export interface Recorded {
  readonly name: string;
  readonly kind: number;
  readonly parent: Recorded | undefined;
  /** The ids of the span, and of those that it links to. */
  readonly id: string;
  readonly links: readonly string[];
  /** The ids of its parent, also of one in another process. */
  readonly parentId: string | undefined;
  readonly attributes: Record<string, unknown>;
  /** Whether it ended with an error. */
  failed: boolean;
  /** The number of times that it was ended. */
  ends: number;
  readonly startTime: api.TimeInput | undefined;
}

/** A measurement: the metric, the attributes, and the value. */
export type Sample = readonly [metric: string, attributes: api.Attributes, value: number];

/** An instrument. */
export type Instrument = readonly [name: string, kind: string, unit: string, description: string];

/** The parameters of a function that creates an instrument. */
type Given = readonly [name: string, options?: api.MetricOptions];

/** Returns the ids of a span as one text. */
export function idOf({ traceId, spanId }: api.SpanContext): string {
  return `${traceId}-${spanId}`;
}

/** Returns random hexadecimal digits. */
function hex(length: number): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, length);
}

/** Records spans and measurements. */
export function recorder() {
  const spans: Recorded[] = [];
  const samples: Sample[] = [];
  const instruments: Instrument[] = [];
  const callbacks: (readonly [name: string, callback: api.ObservableCallback])[] = [];
  const nowhere = api.ROOT_CONTEXT;
  const places = new WeakMap<object, Recorded>();
  const handles = new WeakMap<api.Span, Recorded>();

  function startSpan(name: string, options: api.SpanOptions = {}, context = nowhere): api.Span {
    const { kind = 0, attributes, startTime, links = [] } = options;
    const parent = api.trace.getSpanContext(context);
    const own = { traceId: parent?.traceId ?? hex(32), spanId: hex(16), traceFlags: api.TraceFlags.SAMPLED };
    const recorded: Recorded = {
      name,
      kind,
      parent: places.get(context),
      id: idOf(own),
      links: links.map(({ context }) => idOf(context)),
      parentId: parent && idOf(parent),
      attributes: { ...attributes },
      failed: false,
      ends: 0,
      startTime,
    };
    spans.push(recorded);
    const span: api.Span = Object.assign(api.trace.wrapSpanContext(own), {
      setAttributes(more: api.Attributes) {
        Object.assign(recorded.attributes, more);
        return span;
      },
      setStatus({ code }: api.SpanStatus) {
        recorded.failed = code === api.SpanStatusCode.ERROR;
        return span;
      },
      end() {
        recorded.ends++;
      },
    });
    handles.set(span, recorded);
    return span;
  }

  const sampleOf = (name: string) => (value: number, attributes: api.Attributes = {}) =>
    void samples.push([name, attributes, value]);

  /** Notes an instrument, and returns the function that records its values. */
  function instrument(kind: string, name: string, { unit = "", description = "" }: api.MetricOptions = {}) {
    instruments.push([name, kind, unit, description]);
    return sampleOf(name);
  }

  /** Returns the present values of the gauges. */
  function gauges(): Readonly<Record<string, number>> {
    const values: Record<string, number> = {};
    for (const [name, callback] of callbacks) callback({ observe: (value) => void (values[name] = value) });
    return values;
  }

  const telemetry: Telemetry = {
    trace: {
      getTracer: () => Object.assign(new api.ProxyTracerProvider().getTracer("none"), { startSpan }),
      setSpan(before, span) {
        const context = api.trace.setSpan(before, span);
        const recorded = handles.get(span);
        if (recorded) places.set(context, recorded);
        return context;
      },
      getSpanContext: (context) => api.trace.getSpanContext(context),
      setSpanContext: (context, span) => api.trace.setSpanContext(context, span),
    },
    metrics: {
      getMeter: () =>
        Object.assign(Object.create(api.createNoopMeter()), {
          createHistogram: (...given: Given) => ({ record: instrument("histogram", ...given) }),
          createCounter: (...given: Given) => ({ add: instrument("counter", ...given) }),
          createUpDownCounter: (...given: Given) => ({ add: instrument("upDownCounter", ...given) }),
          createObservableGauge(...given: Given) {
            instrument("gauge", ...given);
            return { addCallback: (callback: api.ObservableCallback) => void callbacks.push([given[0], callback]) };
          },
        }),
    },
    context: { active: () => nowhere, with: (_, work, self, ...values) => work.apply(self, values) },
  };

  /** Returns a line for each span, indented below its parent: its name, its error, and whether it was not ended exactly once. */
  function tree(parent?: Recorded, depth = 0): string[] {
    return spans.filter((span) => span.parent === parent).flatMap((span) => {
      const { name, attributes: { "error.type": error }, failed, ends } = span;
      const words = [name, ...failed || error ? [`!${error}`] : [], ...ends === 1 ? [] : [`ended ${ends} times`]];
      return ["  ".repeat(depth) + words.join(" "), ...tree(span, depth + 1)];
    });
  }

  return { api: telemetry, spans, samples, instruments, gauges, tree };
}
