/**
 * Errors of sessions.
 *
 * @module
 */
import { brand } from "../../protocol/brand.ts";
import type { Message } from "../../protocol/message.ts";

/** A session that cannot be claimed. */
export class SessionError extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "SessionError");

  /** The name of the class. */
  override readonly name = "SessionError";

  /** Creates the error with a code for programs. */
  constructor(
    message: string,
    readonly code: "busy" | "unknown" | "not-paused" | "unasked" | "invalid" | "refused",
    /** The run that has the session, if it is busy. */
    readonly run?: string,
    /** The messages of a session that the caller may see. */
    readonly messages: readonly Message[] = [],
  ) {
    super(message);
  }
}
