/**
 * The port of arrivals: messages to a run while it works, and requests that it end.
 *
 * @module
 */
import type { ToolResult, UserMessage } from "../../protocol/message.ts";
import type { Mail } from "../persistence/session.ts";

/** Messages and requests from outside. The engine asks for them at the end of each turn. `features/steering.ts` implements it. */
export interface Arrivals {
  /** True if messages wait. */
  readonly waiting: boolean;
  /** True if the run should end with one more answer, without tools. */
  readonly finishing: boolean;
  /** The reason why no further turn begins, if there is one. */
  readonly draining: string | undefined;
  /** The result of calls that have not begun, if something waits that does not wait for them. */
  readonly skipped: ToolResult | undefined;
  /** Returns the messages that wait, each after its context, and removes them. */
  take(): readonly UserMessage[];
  /** Adds requests of other processes, which were accepted before. */
  receive(mail: readonly Mail[]): void;
  /** Keeps the messages in the state of the run from now on. */
  attach(state: Map<string, unknown>): void;
  /** Accepts no further messages: the run is about to end. */
  close(): void;
}
