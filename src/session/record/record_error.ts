/**
 * What cannot be had of a record.
 *
 * @module
 */

/**
 * Why not: there is no such record, what comes next is forgotten, that has not happened yet, the key is of another request, or what is written cannot be kept.
 */
export type RecordProblem = "unknown" | "forgotten" | "ahead" | "key-reused" | "repeated" | "unrecorded";

/** Something that cannot be had of a record. Its message may be told to the client. */
export class RecordError extends Error {
  override readonly name = "RecordError";

  /** Says what could not be done, and why as a word. */
  constructor(message: string, readonly code: RecordProblem) {
    super(message);
  }
}
