/**
 * The finish reason of a run, as its client reads it.
 *
 * @module
 */
import type { Event, FinishReason } from "../protocol/event.ts";
import type { EventOf } from "./encoder.ts";

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
