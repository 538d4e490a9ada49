/**
 * Building blocks for middleware: cancellation, locks, canonical JSON, hashes, and functions that visit or condition every hook.
 * The middleware of this package use them, and so can yours.
 *
 * @module
 */
export { describeIssues, type Issue, schemaOf, type ToolOperation, type Validation } from "./tool.ts";
export { withoutToolQuestion } from "./approval_hooks.ts";
export { type AnsweredCall, answersOf, askDuring, type CallQuestion } from "./features/call_questions.ts";
export {
  answerElicitation,
  type Elicitation,
  type ElicitationAnswer,
  hookServers,
  noteConnection,
  reviewElicitation,
  type ServerHooks,
} from "./features/server_hooks.ts";
export { jsonThatRuns } from "./tool_io.ts";
export { outputInstructions } from "./output.ts";
export { type Division, groupMessages, splitTranscript } from "./compaction.ts";
export { directCall } from "./position.ts";
export { Cleanups } from "./state.ts";
export { reviewText } from "./input_hooks.ts";
export { eachHook, points, type WrapHook } from "./each_hook.ts";
export type { Conditional } from "./onion.ts";
export { holdEvent, partEvent, type Shown, trackShownText } from "./rewrite.ts";
export { canonicalJson, hashOf, mapLeaves } from "./lib/json.ts";
export { onlyIf } from "./conditions.ts";
export {
  anySignal,
  type Cancellation,
  cancellationOf,
  delay,
  isLate,
  isThenable,
  lateAfter,
  startTimer,
  type TimeOptions,
  withGracePeriod,
  withinTime,
} from "./lib/cancellation.ts";
export { fetchBytes, type FetchOptions, type ReadBounds, readBytes, type ReadOptions, readText } from "./lib/fetch.ts";
export { bordersOf, estimateTokens, visible, wildcard } from "./lib/text.ts";
export { parseTraceparent, type RemoteSpan, traceparentOf } from "./lib/traceparent.ts";
export { expectChoice, expectCount, expectTime, startError } from "./lib/options.ts";
export { costOf, type Price } from "../protocol/message.ts";
export { expectNames, isObject, type UnknownObject } from "../protocol/shape.ts";
export { Locks, Semaphore, SharedWork } from "./lib/locks.ts";
export { windowCounter, type WindowOptions } from "./lib/windows.ts";
export type { IncrementOptions, KeyValue, KeyValueOptions } from "../protocol/key_value.ts";
export type { FileChange, FileContent, FileEntry, Files, FileStat } from "../protocol/files.ts";
