/**
 * The data of a log line.
 *
 * @module
 */
import type { Point } from "../../../mod.ts";

/** One completed point. Contains no input, no text and no error message. */
export interface LogLine {
  /** Time of completion, in ISO 8601. */
  readonly time: string;
  /** Id of the run. */
  readonly run: string;
  /** Id of the session. */
  readonly session: string;
  /** The point. */
  readonly point: Point;
  /** Number of the turn, from 1, if the point belongs to one. */
  readonly turn?: number;
  /** Name of the tool, if the point belongs to a call. */
  readonly tool?: string;
  /** Id of the call, if the point belongs to one. */
  readonly call?: string;
  /** Duration in milliseconds, inner layers included. */
  readonly ms: number;
  /** The status, the decision or the finish reason; `threw`, `ended` or `paused` if there is no result. */
  readonly outcome: string;
  /** Name of the thrown error; at `error`, of the error that is handled. */
  readonly error?: string;
}
