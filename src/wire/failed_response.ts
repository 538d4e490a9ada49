/**
 * The JSON response to a run that failed or was aborted.
 *
 * @module
 */
import type { Event, FailureCode } from "../protocol/event.ts";
import type { JsonResponse } from "./wire.ts";

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
