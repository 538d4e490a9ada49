/**
 * The inbox of a run: what waits to be said to it while it runs, and what that means for calls that have not begun.
 *
 * @module
 */
import type { ToolResult, UserMessage } from "../protocol/message.ts";
import type { Mail } from "../protocol/session.ts";
import { skipped } from "./answers.ts";

/** The most messages that wait for one run. */
export const most = 10;

/** How a message is delivered to a run. */
export interface SendOptions {
  /**
   * Where it goes in: after the batch of calls that is running, or as soon as the calls that run have ended, in which case those that have not begun are
   * answered as skipped. Default: "batch".
   */
  readonly after?: "batch" | "calls";
}

/** What waits to be said to a run. */
export class Inbox {
  /** The messages, in their order. */
  waiting: readonly UserMessage[] = [];
  /** What a call comes to that has not begun; nothing where it may. */
  skipping: ToolResult | undefined;
  /** Whether nobody reads any more what comes. */
  closed = false;
  /** Whether the run answers once more, without tools, and ends. */
  finishing = false;

  /** Takes a message. Throws a `RangeError` where too many wait. */
  add(message: UserMessage, { after = "batch" }: SendOptions = {}): void {
    if (this.waiting.length >= most) throw new RangeError(`Cannot send a message to the run: ${most} wait already`);
    this.#put(message, after);
  }

  /** Takes what others have put in the run's record: it was accepted already. */
  receive(mail: readonly Mail[]): void {
    for (const piece of mail) {
      if (piece.type === "finish") this.finish();
      else this.#put(piece.message, piece.after);
    }
  }

  #put(message: UserMessage, after: SendOptions["after"]): void {
    this.waiting = [...this.waiting, message];
    if (after === "calls") this.skipping = skipped("Skipped due to queued user message.");
  }

  /** Ends the run with one more answer. */
  finish(): void {
    this.finishing = true;
    this.skipping = skipped("Skipped due to graceful interrupt.");
  }

  /** Everything that waits, which then waits no more. */
  take(): readonly UserMessage[] {
    const { waiting } = this;
    this.waiting = [];
    if (!this.finishing) this.skipping = undefined;
    return waiting;
  }
}
