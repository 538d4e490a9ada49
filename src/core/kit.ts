/**
 * Building blocks for middleware: cancellation, locks, canonical JSON, hashes, and functions that visit or condition every hook.
 * The middleware of this package use them, and so can yours.
 *
 * @module
 */
export { describeIssues, schemaOf } from "./agent/schema.ts";
export { withoutToolQuestion } from "./calls/approval.ts";
export { jsonThatRuns } from "./calls/tool_io.ts";
export { outputInstructions } from "./features/output.ts";
export { type Division, groupMessages, splitTranscript } from "./features/trim.ts";
export { Cleanups } from "./hooks/cleanups.ts";
export { eachHook, points, type WrapHook } from "./hooks/each_hook.ts";
export type { Conditional } from "./hooks/onion.ts";
export { partEvent } from "./hooks/part_event.ts";
export { mapLeaves } from "./lib/map_leaves.ts";
export { onlyIf } from "./hooks/select.ts";
export { type Shown, trackShownText } from "./hooks/shown_text.ts";
export { anySignal } from "./lib/any_signal.ts";
export {
  type Cancellation,
  cancellationOf,
  delay,
  startTimer,
  type TimeOptions,
  withGracePeriod,
  withinTime,
} from "./lib/cancellation.ts";
export { canonicalJson } from "./lib/canonical_json.ts";
export { estimateTokens } from "./lib/estimate.ts";
export { expectChoice, expectTime } from "./lib/expect_option.ts";
export { expectNames } from "../protocol/shape.ts";
export { hashOf } from "./lib/hash.ts";
export { Locks } from "./lib/locks.ts";
export { SharedWork } from "./lib/shared_work.ts";
export type { WindowOptions } from "./lib/sliding_window.ts";
export { Semaphore } from "./lib/semaphore.ts";
export { windowCounter } from "./lib/shared_window.ts";
export { startError } from "./lib/start_error.ts";
export { bordersOf, visible, wildcard } from "./lib/text.ts";
export type { IncrementOptions, KeyValue, KeyValueOptions } from "../protocol/key_value.ts";
export type { FileChange, FileContent, FileEntry, Files, FileStat } from "../protocol/files.ts";
