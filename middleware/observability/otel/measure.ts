/**
 * Operations, each with a span and its time.
 *
 * @module
 */
import { isInterrupt, noUsage, type Usage } from "../../../mod.ts";
import type { Attributes, Context, Span, Telemetry } from "./api.ts";

/** Something that takes time. */
export interface Operation {
  /** What it does, as the conventions call it. */
  readonly name: "invoke_agent" | "chat" | "execute_tool";
  /** Whom it concerns: an agent, a model, a tool. */
  readonly of?: string | undefined;
  /** What it is known by, in its span and where it is measured. */
  readonly labels: Attributes;
  /** What its span says beside. */
  readonly details: Attributes;
}

/** How an operation ended. */
export interface Outcome {
  /** What it is known by then, beside. */
  readonly labels?: Attributes;
  /** What its span says then, beside. */
  readonly details?: Attributes;
  /** The tokens it took, where that is known. */
  readonly tokens?: Usage;
  /** The kind of error that it ended with; nothing where all went well. */
  readonly error?: string | undefined;
}

/** An operation that has begun. */
export interface Begun {
  /** Its span. */
  readonly span: Span;
  /** Where what it does belongs. */
  readonly context: Context;
  /** Ends it, once. */
  end(outcome?: Outcome): void;
}

/** What makes spans. */
export interface Measures {
  /** Begins an operation. */
  begin(operation: Operation, parent: Context): Begun;
  /** Whether nobody records: neither spans nor measurements. */
  idle(span: Span): boolean;
  /** Tells of something that is over, and took so many milliseconds. */
  mark(name: string, outcome: Outcome, parent: Context, ms?: number): void;
}

/** Makes spans, and records the time and the tokens that operations take. */
export function measures({ trace, metrics, isSpanContextValid, createNoopMeter }: Telemetry): Measures {
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
    begin({ name, of, labels, details }, parent) {
      const known = { "gen_ai.operation.name": name, ...labels };
      const span = tracer.startSpan(of === undefined ? name : `${name} ${of}`, {
        kind: name === "chat" ? 2 : 0,
        attributes: { ...known, ...details },
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
          conclude(span, outcome);
          const seconds = (performance.now() - start) / 1_000;
          const { labels, tokens = noUsage } = outcome;
          duration.record(seconds, { ...known, ...labels, ...errorOf(outcome) }, context);
          if (tokens.input + tokens.output === 0) return;
          usage.record(tokens.input, { ...known, ...labels, "gen_ai.token.type": "input" }, context);
          usage.record(tokens.output, { ...known, ...labels, "gen_ai.token.type": "output" }, context);
        },
      };
    },
    idle(span) {
      const known = span.spanContext?.(); // a sampler's refusal is known all the same, and may be of this span alone
      return meter === createNoopMeter?.() && known !== undefined && isSpanContextValid?.(known) === false;
    },
    mark(name, outcome, parent, ms = 0) {
      const startTime = performance.timeOrigin + performance.now() - ms;
      conclude(tracer.startSpan(name, { kind: 0, startTime }, parent), outcome);
    },
  };
}

function conclude(span: Span, outcome: Outcome): void {
  if (outcome.error !== undefined) span.setStatus({ code: 2 });
  span.setAttributes({ ...outcome.labels, ...outcome.details, ...errorOf(outcome) });
  span.end();
}

function errorOf({ error }: Outcome): Attributes {
  return error === undefined ? {} : { "error.type": error };
}

/** How an operation ended that threw: what ends or pauses a run is no error. */
export function thrown(error: unknown): Outcome {
  return isInterrupt(error) ? {} : { error: kindOf(error) };
}

/** The kind of an error: the status of a provider's refusal, or its name; never its message. */
export function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return "status" in error && typeof error.status === "number" ? String(error.status) : error.name;
}
