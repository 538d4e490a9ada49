/**
 * Building blocks for middleware: cancellation, locks, canonical JSON, and functions that visit or condition every hook.
 * The middleware of this package use them, and so can yours.
 *
 * @module
 */
export { type Cancellation, cancellationOf, delay, startTimer, withGracePeriod } from "./abandon.ts";
export { canonicalJson } from "./canonical.ts";
export { eachHook, points, type WrapHook } from "./each_hook.ts";
export { estimateTokens } from "./estimate.ts";
export { Locks } from "./locks.ts";
export { describeIssues, schemaOf } from "./schema.ts";
export type { Beneath, Layered, Review, Wrap } from "./onion.ts";
export { onlyIf, reviewIf } from "./select.ts";
export { type Shown, trackShownText } from "./shown.ts";
export { Semaphore } from "./slots.ts";
export { type Division, groupMessages, splitTranscript } from "./trim.ts";
