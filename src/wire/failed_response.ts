/**
 * The outcome of a run that gave no answer: a refusal, a finish reason, or a response with an error status.
 *
 * @module
 */
import type { Event, FailureCode, FinishReason } from "../protocol/event.ts";
import type { EventOf, JsonResponse } from "./wire.ts";

// Runs that a hook refused.

/** Returns the reason why a hook refused or cancelled the run, if it gave no answer in place of the model's; undefined for another end. */
export function refusalOf(end: Event): string | undefined {
  if (end.type !== "run.finished" || end.status !== "cancelled" || end.text !== "") return undefined;
  return end.reason ?? "The prompt was refused.";
}

// The finish reason of a run, as its client reads it.

/** Returns the finish reason for clients: `finish`, that of the last response, or `length` for a run that ended at a limit, unless the response was stopped. */
export function finishOfRun(end: Event, finish: FinishReason): FinishReason {
  const isLimit = end.type === "run.finished" && end.status === "limit";
  return isLimit && finish !== "filter" && finish !== "refusal" ? "length" : finish;
}

/** The finish reason of the last response, where OpenAI's fields have no word for it, in the form of compatible servers. */
export interface NativeFinish {
  readonly native_finish_reason?: FinishReason;
}

/** Returns the finish reason that OpenAI's fields cannot tell from another one. */
export function nativeFinish({ finish }: EventOf<"run.finished">): NativeFinish {
  return finish === "refusal" || finish === "empty" || finish === "other" ? { native_finish_reason: finish } : {};
}

// Responses of runs that failed.

/**
 * The status of a failure code. A failure of the model's provider is one of the gateway. `unauthorized` concerns the server's key, not the client's.
 * Default: 500.
 */
const statuses: { readonly [code in FailureCode]?: JsonResponse["status"] } = {
  rate_limited: 429,
  overloaded: 503,
  unavailable: 502,
  unauthorized: 502,
  context: 413,
};

/** Returns the response to a run that failed or was aborted, with this body. */
export function failedResponse(end: Event, body: object): JsonResponse {
  if (end.type !== "run.failed") return { status: 500, body };
  const { code, retryAfter } = end;
  return { status: statuses[code] ?? 500, body, ...(retryAfter !== undefined && { retryAfter }) };
}
