/**
 * Recordings of runs: replay them offline, and compare them with another middleware stack or prompt.
 *
 * @module
 */
export { compare, type Comparison, type Difference } from "./compare.ts";
export type { Execution } from "./player.ts";
export {
  recordable,
  type RecordableAgent,
  type RecordableOptions,
  type RecordedHandle,
  type RecordOption,
} from "./recordable.ts";
export type { RecordedError } from "./recorded_error.ts";
export {
  readRecording,
  type RecordedEntry,
  type RecordedInput,
  type RecordedOrder,
  type RecordedRequest,
  type Recording,
  type RecordingOptions,
  writeRecording,
} from "./recording.ts";
export { type Replay, replay, type Rerun, rerun, type RerunOptions } from "./replay.ts";
