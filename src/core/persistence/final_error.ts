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

/** The error of a stored session that cannot be read: it is damaged, or a newer version of the package has written it. It stays as it is. */
export class UnreadableError extends FinalError {
  /** The mark of the class, which its copies share. */
  static override readonly "~brand": symbol = /* @__PURE__ */ brand(this, "UnreadableError");

  /** The name of the class. */
  override readonly name = "UnreadableError";
}
