/**
 * Errors of the records of runs.
 *
 * @module
 */
import { brand } from "../../protocol/brand.ts";

/**
 * The reason of a `RecordError`.
 *
 * - `unknown`: there is no record of the run.
 * - `forgotten`: the next events have been deleted.
 * - `ahead`: the position is after the last event.
 * - `key-reused`: another request has the idempotency key.
 * - `repeated`: the same request is being handled, and its events cannot be joined.
 * - `unrecorded`: the events could not be logged.
 * - `unreachable`: another process may execute the run, and its session is not known.
 */
export type RecordProblem =
  | "unknown"
  | "forgotten"
  | "ahead"
  | "key-reused"
  | "repeated"
  | "unrecorded"
  | "unreachable";

/** A request that the record of a run does not allow. Its message may be sent to the client. */
export class RecordError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "RecordError");

  override readonly name = "RecordError";

  /** Takes the message and the reason. */
  constructor(message: string, readonly code: RecordProblem) {
    super(message);
  }
}
