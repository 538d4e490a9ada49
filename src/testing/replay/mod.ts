/**
 * Recordings of runs: replay them offline, and compare them with another middleware stack or prompt.
 *
 * @module
 */
export {
  compare,
  type Comparison,
  type Difference,
  type Replay,
  replay,
  type Rerun,
  rerun,
  type RerunOptions,
} from "./replay.ts";
export type { Execution } from "./player.ts";
export {
  recordable,
  type RecordableAgent,
  type RecordableOptions,
  type RecordedHandle,
  type RecordOption,
} from "./recordable.ts";
export {
  readRecording,
  type RecordedEntry,
  type RecordedError,
  type RecordedInput,
  type RecordedOrder,
  type RecordedRequest,
  type Recording,
  type RecordingOptions,
  writeRecording,
} from "./recording.ts";
export type { VarsOption } from "../../core/agent.ts";
export type { DirectCall } from "../../core/position.ts";
