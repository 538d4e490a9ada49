/**
 * A collector of OpenTelemetry on this machine, for programs whose telemetry Deno exports.
 *
 * @module
 */
import * as z from "zod";

/** The fields of a span or a measurement. */
export type Attributes = Readonly<Record<string, unknown>>;

/** An exported span. */
export interface Exported {
  readonly name: string;
  /** The kind in OpenTelemetry: 1 is internal, 3 is a client's request. */
  readonly kind: number;
  readonly attributes: Attributes;
  /** Whether it ended with an error. */
  readonly failed: boolean;
  readonly inside: readonly Exported[];
}

/** The measurements for some attributes. The count of a counter is 1. */
export interface Point {
  readonly attributes: Attributes;
  readonly count: number;
  readonly sum: number;
}

/** The exported data of a program, of the library and of Deno itself. */
export interface Telemetry {
  /** The output of the program. */
  readonly printed: string;
  /** All spans, as they were exported. */
  readonly all: readonly Span[];
  /** The root spans in the order in which they began. Spans of hooks, which may begin at the same time as their content, are last. */
  readonly spans: readonly Exported[];
  /** The histograms and counters of the library by name, with their units, buckets and counts. */
  readonly metrics: readonly {
    readonly name: string;
    readonly bounds: readonly number[];
    readonly points: Point[];
  }[];
}

/**
 * Runs a module of this folder with the collector's address and `args`, and returns its telemetry. Other paths of the collector answer with their name.
 * Values that differ between runs are replaced: the address by `collector`, an id by `uuid`, a time by 0.
 */
export async function exported(module: string, ...args: readonly string[]): Promise<Telemetry> {
  const bodies: { readonly path: string; readonly body: string }[] = [];
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    if (request.method === "POST") bodies.push({ path: pathname, body: await request.text() });
    return new Response(pathname);
  });
  const address = `http://127.0.0.1:${server.addr.port}`;
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-net=127.0.0.1",
      new URL(module, import.meta.url).pathname,
      address,
      ...args,
    ],
    env: { OTEL_DENO: "true", OTEL_EXPORTER_OTLP_PROTOCOL: "http/json", OTEL_EXPORTER_OTLP_ENDPOINT: address },
  }).output();
  const decoder = new TextDecoder();
  if (!success) throw new Error(`Cannot run ${module}: ${decoder.decode(stderr)}`);
  const uuid = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<![\w-])[\w-]{22}-\d+(?![\w-])/g; // also a run of a named session
  const of = (path: string) =>
    bodies.filter((each) => each.path === path)
      .map(({ body }) => JSON.parse(body.replaceAll(address, "collector").replace(uuid, "uuid")));
  const all = of("/v1/traces").flatMap(spansOf);
  return {
    printed: decoder.decode(stdout),
    all,
    spans: nested(all),
    metrics: of("/v1/metrics").flatMap(metricsOf).toSorted((a, b) => a.name < b.name ? -1 : 1),
  };
}

const value = z.union([
  z.object({ stringValue: z.string() }).transform(({ stringValue }) => stringValue),
  z.object({ boolValue: z.boolean() }).transform(({ boolValue }) => boolValue),
  z.object({ intValue: z.coerce.number() }).transform(({ intValue }) => intValue),
  z.object({ doubleValue: z.number() }).transform(({ doubleValue }) => doubleValue),
]);
const list = z.object({ arrayValue: z.object({ values: z.array(value) }) })
  .transform(({ arrayValue }) => arrayValue.values);
const attributes = z.array(z.object({ key: z.string(), value: z.union([value, list]) }))
  .transform((pairs): Attributes =>
    Object.fromEntries(pairs.map(({ key, value }) => [key, /time_to/.test(key) ? 0 : value]))
  );

const traces = z.object({
  resourceSpans: z.array(z.object({
    scopeSpans: z.array(z.object({
      spans: z.array(z.object({
        traceId: z.string(),
        spanId: z.string(),
        parentSpanId: z.string(),
        name: z.string(),
        kind: z.number(),
        startTimeUnixNano: z.string(),
        endTimeUnixNano: z.string(),
        attributes,
        status: z.object({ code: z.number() }),
        links: z.array(z.object({ traceId: z.string(), spanId: z.string() })),
      })),
    })),
  })),
});

type Span = z.infer<typeof traces>["resourceSpans"][number]["scopeSpans"][number]["spans"][number];

function spansOf(body: unknown): Span[] {
  return traces.parse(body).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

const isHook = ({ name }: Span) => name.startsWith("hook ");
const start = ({ startTimeUnixNano }: Span) => BigInt(startTimeUnixNano);

function nested(spans: readonly Span[], parent = ""): Exported[] {
  return spans.filter(({ parentSpanId }) => parentSpanId === parent)
    .toSorted((a, b) => Number(isHook(a)) - Number(isHook(b)) || Number(start(a) - start(b)))
    .map(({ spanId, name, kind, attributes, status }) => {
      return { name, kind, attributes, failed: status.code === 2, inside: nested(spans, spanId) };
    });
}

const metrics = z.object({
  resourceMetrics: z.array(z.object({
    scopeMetrics: z.array(z.object({
      scope: z.object({ name: z.string() }),
      metrics: z.array(z.object({
        name: z.string(),
        unit: z.string(),
        histogram: z.object({
          dataPoints: z.array(z.object({
            attributes,
            count: z.coerce.number(),
            sum: z.number(),
            explicitBounds: z.array(z.number()),
          })),
        }).optional(),
        sum: z.object({
          dataPoints: z.array(z.union([
            z.object({ attributes, asInt: z.coerce.number() })
              .transform(({ attributes, asInt }) => ({ attributes, sum: asInt })),
            z.object({ attributes, asDouble: z.number() })
              .transform(({ attributes, asDouble }) => ({ attributes, sum: asDouble })),
          ])),
        }).optional(),
      })),
    })),
  })),
});

function metricsOf(body: unknown): Telemetry["metrics"][number][] {
  const scopes = metrics.parse(body).resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics);
  return scopes.filter(({ scope }) => scope.name === "jizai").flatMap(({ metrics }) =>
    metrics.map(({ name, unit, histogram: { dataPoints = [] } = {}, sum: counter }) => ({
      name: `${name} ${unit}`,
      bounds: dataPoints[0]?.explicitBounds ?? [],
      points: counter
        ? counter.dataPoints.map((point) => ({ ...point, count: 1 }))
        : dataPoints.map(({ attributes, count, sum }) => ({ attributes, count, sum })),
    }))
  );
}
