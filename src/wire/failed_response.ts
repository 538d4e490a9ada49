/**
 * The response to a run that gave no answer: the reason of a refusal, and the HTTP status of a failure.
 *
 * @module
 */
import type { Event, FailureCode } from "../protocol/event.ts";
import type { JsonResponse } from "./wire.ts";

// Runs that a hook refused.

/** Returns the reason why a hook refused or cancelled the run, if it gave no answer in place of the model's; undefined for another end. */
export function refusalOf(end: Event): string | undefined {
  if (end.type !== "run.finished" || end.status !== "cancelled" || end.text !== "") return undefined;
  return end.reason ?? "The prompt was refused.";
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
