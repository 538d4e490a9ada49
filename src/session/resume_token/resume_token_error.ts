/**
 * What is wrong with a resume token.
 *
 * @module
 */

/**
 * Why a resume token is not made or not opened: it is not what was sealed (`forged`: made up, or changed by so much as a byte), no key of its id is known, it
 * is of another version of the format or of another session, it has expired, or it is too large.
 */
export type ResumeTokenProblem = "forged" | "unknown-key" | "version" | "other-session" | "expired" | "too-large";

/** A resume token that is not made or not opened. Its message may be told to the client. */
export class ResumeTokenError extends Error {
  /** The name of the class. */
  override readonly name = "ResumeTokenError";

  /** Says what could not be done, and why as a word. */
  constructor(message: string, readonly code: ResumeTokenProblem) {
    super(message);
  }
}
