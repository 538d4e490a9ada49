/**
 * The finish reason of a run, as its client reads it.
 *
 * @module
 */
import type { Event } from "../protocol/event.ts";
import type { FinishReason } from "../protocol/response_event.ts";

/** Returns the finish reason for clients: `finish`, that of the last response, or `length` for a run that ended at a limit, unless the response was stopped. */
export function finishOfRun(end: Event, finish: FinishReason): FinishReason {
  const isLimit = end.type === "run.finished" && end.status === "limit";
  return isLimit && finish !== "filter" && finish !== "refusal" ? "length" : finish;
}
