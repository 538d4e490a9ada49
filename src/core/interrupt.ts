/**
 * Interrupts: errors that unwind a run because it ends or pauses, not because it fails.
 *
 * @module
 */
import { expectJson } from "./lib/json.ts";
import { expectChoice } from "./lib/options.ts";
import { brand } from "../protocol/brand.ts";
import type { Question } from "../protocol/question.ts";

/** The options of `run.end()`. */
export interface EndOptions {
  /**
   * The status of the result. Only "done" counts as an answer: the text is the last one of the model. "limit" is for a limit of your own, such as a budget. For
   * "cancelled" and "failed", the `abort` hooks run. Default: "cancelled".
   */
  readonly as?: "done" | "limit" | "cancelled" | "failed";
  /** Restores the transcript to the start of the run. Default: false. */
  readonly rollback?: boolean;
  /** Keeps no result of the current batch: all its calls are answered as withheld. Default: false. */
  readonly withhold?: boolean;
  /** Ends all parent runs too, each with the same status and reason. Default: false. */
  readonly tree?: boolean;
}

/** Unwinds a run that a hook ended. Made by `ctx.run.end()`. */
export class End extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "End");

  /** The name of the class. */
  override readonly name = "End";
  /** The status of the result. */
  readonly as: NonNullable<EndOptions["as"]>;
  /** True if the transcript is restored to the start of the run. */
  readonly rollback: boolean;
  /** True if no result of the current batch is kept. */
  readonly withhold: boolean;
  /** True if all parent runs end too. */
  readonly tree: boolean;

  /** Creates the interrupt. Throws a `TypeError` for an unknown status. */
  constructor(
    readonly reason: string,
    { as = "cancelled", rollback = false, withhold = false, tree = false }: EndOptions = {},
  ) {
    super(`The run ends: ${reason}`);
    expectChoice("Cannot end the run", "as", as, ["done", "limit", "cancelled", "failed"]);
    this.as = as;
    this.rollback = rollback;
    this.withhold = withhold;
    this.tree = tree;
  }
}

/** Unwinds a run that pauses: a hook threw `ctx.run.pause()`, or a call waits for an answer. */
export class Pause extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "Pause");

  /** The name of the class. */
  override readonly name = "Pause";

  /**
   * Creates the interrupt. `saved` is JSON that a tool receives when its call runs again. Throws a `TypeError` if the questions or `saved` are not JSON.
   */
  constructor(readonly questions: readonly Question[], readonly saved?: unknown) {
    super(`The run pauses: ${questions.flatMap((question) => question.questions).join("; ")}`);
    // Inputs and schemas of 100 levels were accepted, and the sessions of subagents contain them.
    expectJson("Cannot pause", [questions, saved], { levels: 150 });
  }
}

/** Thrown by `next()` at `tool` if the call waits for a person. Code after `next()` runs once, when there is a result. */
export class Paused extends Error {
  /** The mark of the class, which its copies share. */
  static readonly "~brand": symbol = /* @__PURE__ */ brand(this, "Paused");

  /** The name of the class. */
  override readonly name = "Paused";

  /** Creates the interrupt for a call id. */
  constructor(call: string) {
    super(`The call ${call} waits for an answer`);
  }
}

/** Returns true for an interrupt. Rethrow it: the run ends or pauses. */
export function isInterrupt(error: unknown): error is End | Pause | Paused {
  return error instanceof End || error instanceof Pause || error instanceof Paused;
}
