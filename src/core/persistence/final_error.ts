/**
 * Errors of stores and logs after which a run does not retry.
 *
 * @module
 */
import { brand } from "../../protocol/brand.ts";

/**
 * A failure that lasts longer than a few seconds. If an adapter of yours throws it, a run does not retry the operation.
 *
 * ```ts
 * import { FinalError } from "@jizai/jizai/session/durable";
 *
 * const error = new FinalError("Cannot save the session: it is larger than a value of the database");
 * ```
 */
export class FinalError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "FinalError");

  /** The name of the class. */
  override readonly name: string = "FinalError";
}

/**
 * The error of a stored session, or of the record of a run, that cannot be read: it is damaged, or a newer version of the package has written it. It stays as it
 * is.
 */
export class UnreadableError extends FinalError {
  /** The mark of the class, which its copies share. */
  static override readonly "~brand": symbol = /* @__PURE__ */ brand(this, "UnreadableError");

  /** The name of the class. */
  override readonly name = "UnreadableError";
  /** The name of what cannot be read, for clients. */
  readonly subject: "session" | "record of the run";

  constructor(message: string, { subject = "session", ...options }: UnreadableOptions = {}) {
    super(message, options);
    this.subject = subject;
  }
}

/** Options of an `UnreadableError`. */
export interface UnreadableOptions extends ErrorOptions {
  /** The name of what cannot be read. Default: "session". */
  readonly subject?: UnreadableError["subject"];
}
