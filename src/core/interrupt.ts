/**
 * What unwinds an onion without being a failure: a run that ends, a call or a run that pauses. Hooks see them pass in `finally`.
 *
 * @module
 */
import type { Question } from "../protocol/question.ts";

/** How a run is ended by a hook. */
export interface EndOptions {
  /** As which the result's status is said: done, failed, or cancelled. Default: "ended". */
  readonly as?: "ended" | "failed" | "cancelled";
  /** Takes the transcript back to where the run began. Default: false. */
  readonly rollback?: boolean;
  /** Keeps no result of the batch of calls that is being run: all of them count as withheld. Default: false. */
  readonly withhold?: boolean;
}

/** Unwinds a run that a hook ended. Made by `ctx.run.end()`. */
export class End extends Error {
  /** The name of the class. */
  override readonly name = "End";
  /** As which the result's status is said. */
  readonly as: "ended" | "failed" | "cancelled";
  /** Whether the transcript goes back to where the run began. */
  readonly rollback: boolean;
  /** Whether no result of the batch is kept that is being run. */
  readonly withhold: boolean;

  /** Says why the run ends, and as what. */
  constructor(readonly reason: string, { as = "ended", rollback = false, withhold = false }: EndOptions = {}) {
    super(`The run ends: ${reason}`);
    this.as = as;
    this.rollback = rollback;
    this.withhold = withhold;
  }
}

/** Unwinds a run that pauses: a hook said so with `ctx.run.pause()`, or a call waits for an answer. */
export class Pause extends Error {
  /** The name of the class. */
  override readonly name = "Pause";

  /** Says what a person is asked. */
  constructor(readonly questions: readonly Question[]) {
    super(`The run pauses: ${questions.flatMap((question) => question.questions).join("; ")}`);
  }
}

/** Thrown by `next()` at `tool` where the call waits for a person: what comes after it runs once, when there is a result. */
export class Paused extends Error {
  /** The name of the class. */
  override readonly name = "Paused";

  /** Names the call. */
  constructor(call: string) {
    super(`The call ${call} waits for an answer`);
  }
}

/** Whether `error` unwinds rather than fails: let it through. */
export function isInterrupt(error: unknown): error is End | Pause | Paused {
  return error instanceof End || error instanceof Pause || error instanceof Paused;
}
