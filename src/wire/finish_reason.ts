/**
 * The finish reason that a client receives: that of the last response, or of a limit, in the words of its dialect. AG-UI and native clients receive it as it is.
 *
 * @module
 */
import type { Event, FinishReason } from "../protocol/event.ts";
import type { EventOf } from "./wire.ts";

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

// The words of the dialects.

/** The finish reasons that have another name in the UI message stream of the AI SDK. */
export const aiSdkReasons: { readonly [key in FinishReason]?: string } = {
  calls: "tool-calls",
  filter: "content-filter",
  refusal: "content-filter",
  empty: "other",
};

/** The finish reasons that have another name as the `finish_reason` of chat completions. After calls of the agent's own tools the run continues. */
export const completionReasons: { readonly [key in FinishReason]?: string } = {
  calls: "stop",
  filter: "content_filter",
  refusal: "content_filter",
  empty: "stop",
  other: "stop",
};

/** The reasons for an incomplete response of the Responses API, by the finish reason of its last turn. */
export const incompleteReasons: { readonly [key in FinishReason]?: string } = {
  length: "max_output_tokens",
  filter: "content_filter",
  refusal: "content_filter",
};
