/**
 * The response to a run that gave no answer: the reason of a refusal, and the HTTP status of a failure.
 *
 * @module
 */
import type { Event, FailureCode } from "../protocol/event.ts";
import { finishOfRun } from "./finish_reason.ts";
import type { JsonResponse } from "./wire.ts";

// Runs that a hook refused.

/** Returns the reason why a hook refused or cancelled the run, if it gave no answer in place of the model's; undefined for another end. */
export function refusalOf(end: Event): string | undefined {
  if (end.type !== "run.finished" || end.status !== "cancelled" || end.text !== "") return undefined;
  return end.reason ?? "The prompt was refused.";
}

// Ends without an answer, for clients that wait for one.

/** The end of a run without an answer, with a message for the person. */
export interface TextFailure {
  readonly end: Event;
  readonly message: string;
}

/** Returns the failure that an event means for a client that waits for an answer. */
export function textFailure(end: Event): TextFailure | undefined {
  switch (end.type) {
    case "run.failed":
      return { end, message: end.message };
    case "run.aborted":
      return { end, message: `The run was stopped: ${end.reason}` };
    case "run.paused":
      return { end, message: "The run waits for an answer of a person." };
    case "run.finished": {
      if (end.status === "cancelled") return { end, message: end.reason ?? "The prompt was refused." };
      const isWhole = end.output !== undefined || /^(stop|calls|other)$/.test(finishOfRun(end, end.finish ?? "other"));
      return isWhole ? undefined : { end, message: `The answer is not complete: ${end.reason ?? end.finish}` };
    }
    default:
      return undefined;
  }
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
