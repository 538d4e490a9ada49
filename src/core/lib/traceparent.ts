/**
 * The trace context of the W3C: the header `traceparent`, with which a program continues the trace of its caller.
 *
 * @module
 */

/** Matches the fields of version 0, which later versions may add to. Ids of zeros are not valid. */
const pattern = /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.{0,99})?$/;

/** Returns true for a valid `traceparent`. */
export function isTraceparent(value: string | undefined): value is string {
  return value !== undefined && pattern.test(value);
}

/** Returns the id of the trace of a `traceparent`: 32 hexadecimal digits. Returns undefined for a value that is not valid. */
export function traceIdOf(value: string | undefined): string | undefined {
  return isTraceparent(value) ? value.slice(3, 35) : undefined;
}

/** A span of another program, or of an earlier part of the run. */
export interface RemoteSpan {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** The flags: 1 if the span is recorded. */
  readonly traceFlags: number;
}

/** Parses a `traceparent`. Returns undefined for a value that is not valid. */
export function parseTraceparent(value: string | undefined): RemoteSpan | undefined {
  const [, traceId, spanId, flags] = pattern.exec(value ?? "") ?? [];
  return traceId && spanId && flags ? { traceId, spanId, traceFlags: parseInt(flags, 16) & 1 } : undefined;
}

/** Writes a span as a `traceparent`. */
export function traceparentOf({ traceId, spanId, traceFlags }: RemoteSpan): string {
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
}
