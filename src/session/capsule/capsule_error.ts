/**
 * What is wrong with a capsule.
 *
 * @module
 */

/**
 * Why a capsule is not made or not opened: it is not what was sealed (`forged`: made up, or changed by so much as a byte), no key of its id is known, it
 * is of another version of the format or of another session, it has expired, or it is too large.
 */
export type CapsuleProblem = "forged" | "unknown-key" | "version" | "other-session" | "expired" | "too-large";

/** A capsule that is not made or not opened. Its message may be told to the client. */
export class CapsuleError extends Error {
  /** The name of the class. */
  override readonly name = "CapsuleError";

  /** Says what could not be done, and why as a word. */
  constructor(message: string, readonly code: CapsuleProblem) {
    super(message);
  }
}
