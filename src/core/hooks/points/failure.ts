/**
 * The points of a run that fails or is cut short: error and abort.
 *
 * @module
 */
import type { Point } from "../../../protocol/event.ts";
import type { AssistantMessage, Usage } from "../../../protocol/message.ts";
import type { Call } from "../../../protocol/part.ts";
import type { Scope } from "../scope.ts";

/** The context of `error`. */
export interface ErrorContext<V = unknown> extends Scope<V> {
  /** The thrown value. */
  readonly error: unknown;
  /** The point where it was thrown. */
  readonly source: Point;
  /** True if another attempt may succeed. */
  readonly recoverable: boolean;
  /** The number of failures in a row, from 1. */
  readonly attempt: number;
  /** The name of the tool, at `execute`. */
  readonly name?: string;
  /** The call, at `execute` and `tool`. */
  readonly call?: Call;
}
/** The decision about a failure. */
export type ErrorDecision =
  | { readonly type: "retry"; readonly after: number }
  | { readonly type: "skip" }
  | { readonly type: "abort" };

/** The context of `abort`. */
export interface AbortContext<V = unknown> extends Scope<V> {
  /** "stop", "client-gone", "deadline", "failure", "lost" (the process died or the session was taken over), the argument of `stop()`, or the reason that a hook gave. */
  readonly reason: string;
  /** The cause: a hook ended the run as failed or cancelled, the run failed, or it was stopped (also by a limit of time, or a takeover). */
  readonly source: "hook" | "failure" | "stop";
  /** The text of the unfinished answer, if the model was streaming one. */
  readonly message: AssistantMessage | undefined;
  /** The calls without a result. */
  readonly open: readonly Call[];
  /** The tokens used so far. */
  readonly usage: Usage;
}
