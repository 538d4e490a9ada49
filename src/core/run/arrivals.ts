/**
 * The port for what reaches a run from outside while it works.
 *
 * @module
 */
import type { ToolResult, UserMessage } from "../../protocol/message.ts";

/** Messages and requests from outside. The engine asks for them at the end of each turn. */
export interface Arrivals {
  /** True if messages wait. */
  readonly waiting: boolean;
  /** True if the run should end with one more answer, without tools. */
  readonly finishing: boolean;
  /** The reason why no further turn begins, if there is one. */
  readonly draining: string | undefined;
  /** The result of calls that have not begun, if something waits that does not wait for them. */
  readonly skipped: ToolResult | undefined;
  /** Returns the messages that wait, and removes them. */
  take(): readonly UserMessage[];
}
