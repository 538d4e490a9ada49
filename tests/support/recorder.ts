/**
 * A telemetry that records in memory, without a platform's context: the middleware must set the parents of spans.
 *
 * @module
 */
import type { Attributes, Span, SpanOptions, Telemetry } from "@jizai/jizai/middleware/otel";

/** A recorded span. */
export interface Recorded {
  readonly name: string;
  readonly kind: number;
  readonly parent: Recorded | undefined;
  readonly attributes: Record<string, unknown>;
  /** Whether it ended with an error. */
  failed: boolean;
  /** The number of times that it was ended. */
  ends: number;
  readonly startTime: number | undefined;
}

/** A measurement: the histogram, the attributes, and the value. */
export type Sample = readonly [histogram: string, attributes: Attributes, value: number];

/** Records spans and measurements. */
export function recorder() {
  const spans: Recorded[] = [];
  const samples: Sample[] = [];
  const nowhere = {};
  const places = new WeakMap<object, Recorded>();
  const handles = new WeakMap<Span, Recorded>();

  function startSpan(name: string, options: SpanOptions = {}, context: object = nowhere): Span {
    const { kind = 0, attributes, startTime } = options;
    const recorded: Recorded = {
      name,
      kind,
      parent: places.get(context),
      attributes: { ...attributes },
      failed: false,
      ends: 0,
      startTime,
    };
    spans.push(recorded);
    const span: Span = {
      setAttributes: (more) => Object.assign(recorded.attributes, more),
      setStatus({ code }) {
        recorded.failed = code === 2;
      },
      end() {
        recorded.ends++;
      },
    };
    handles.set(span, recorded);
    return span;
  }

  const api: Telemetry = {
    trace: {
      getTracer: () => ({ startSpan }),
      setSpan(_, span) {
        const context = {};
        const recorded = handles.get(span);
        if (recorded) places.set(context, recorded);
        return context;
      },
    },
    metrics: {
      getMeter: () => ({
        createHistogram: (name) => ({
          record: (value, attributes = {}) => void samples.push([name, attributes, value]),
        }),
      }),
    },
    context: { active: () => nowhere, with: (_, work) => work() },
  };

  /** Returns a line for each span, indented below its parent: its name, its error, and whether it was not ended exactly once. */
  function tree(parent?: Recorded, depth = 0): string[] {
    return spans.filter((span) => span.parent === parent).flatMap((span) => {
      const { name, attributes: { "error.type": error }, failed, ends } = span;
      const words = [name, ...failed || error ? [`!${error}`] : [], ...ends === 1 ? [] : [`ended ${ends} times`]];
      return ["  ".repeat(depth) + words.join(" "), ...tree(span, depth + 1)];
    });
  }

  return { api, spans, samples, tree };
}
