/**
 * Counts the calls that are executed, and skips those that the budget has no room for.
 *
 * @module
 */
import { type Change, type ExecuteContext, skipped, type State, state, type ToolResult } from "../../../mod.ts";
import { type Layered, onlyIf } from "../../../src/core/kit.ts";
import type { Ledger } from "./ledger.ts";
import type { BudgetState } from "./requests.ts";

/** The parts of a budget that count calls. */
export interface CountOptions {
  /** The name of the budget. */
  readonly name: string;
  readonly ledger: Ledger;
  readonly own: State<BudgetState>;
  /** The text for the model about a skipped call. */
  readonly reason: string;
}

/** The calls of the latest turn that were counted. */
interface CountedCalls {
  readonly turn: number;
  /** "1" at the place of each of them in the model's order, and "0" at the others. A list would be slow: a state checks all items at every change. */
  readonly marks: string;
}

/** Returns the `execute` hook of a budget. It counts a call once, also if it is executed again: after a failure, a pause or a crash. */
export function countCalls(
  { name, ledger, own, reason }: CountOptions,
): Layered<ExecuteContext, Change, ToolResult> {
  const counted = state<CountedCalls>(`${name}.counted`, () => ({ turn: 0, marks: "" }));

  /** Counts a call that is not counted yet. Returns false if the budget has no room for it. */
  function count(ctx: ExecuteContext): boolean {
    if (own.get(ctx).answer !== undefined) return false;
    const { turn, callIndex } = ctx;
    const latest = counted.get(ctx);
    const marks = latest.turn === turn ? latest.marks : "";
    if (marks[callIndex] === "1") return true;
    if (!ledger.take(ctx)) return false;
    counted.set(ctx, {
      turn,
      marks: `${marks.slice(0, callIndex).padEnd(callIndex, "0")}1${marks.slice(callIndex + 1)}`,
    });
    return true;
  }

  function skipCall(ctx: ExecuteContext): Promise<ToolResult> {
    own.update(ctx, (before) => ({ ...before, over: true }));
    return Promise.resolve(skipped(`Not run: ${reason}.`));
  }

  return onlyIf(skipCall, (ctx) => !count(ctx));
}
