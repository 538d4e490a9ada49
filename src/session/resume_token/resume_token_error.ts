/**
 * Errors of resume tokens.
 *
 * @module
 */
import { brand } from "../../protocol/brand.ts";

/**
 * The reason of a `ResumeTokenError`.
 *
 * - `forged`: the text is not a token of this server, or was changed.
 * - `unknown-key`: the server does not have the key that the text names.
 * - `version`: the token has another version of the format.
 * - `other-session`: the token is of another session.
 * - `expired`: the token has expired.
 * - `too-large`: the token or its session is too large.
 */
export type ResumeTokenProblem = "forged" | "unknown-key" | "version" | "other-session" | "expired" | "too-large";

/** A resume token that cannot be made or opened. Its message may be sent to the client. */
export class ResumeTokenError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "ResumeTokenError");

  /** The name of the class. */
  override readonly name = "ResumeTokenError";

  /** Takes the message and the reason. */
  constructor(message: string, readonly code: ResumeTokenProblem) {
    super(message);
  }
}
