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
