/**
 * Counts the calls that are executed, and skips those that the budget has no room for.
 *
 * @module
 */
import { type Change, type ExecuteContext, skipped, type State, state, type ToolResult } from "../../../mod.ts";
import { type Conditional, onlyIf } from "../../../src/core/kit.ts";
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

/** Returns the `execute` hook of a budget. It counts a call once, also if it is executed again: after a failure, a pause or a crash. */
export function countCalls(
  { name, ledger, own, reason }: CountOptions,
): Conditional<ExecuteContext, Change, ToolResult> {
  const latest = state(`${name}.turn`, () => 0);
  /**
   * The calls of the latest turn that were counted: "!" at the place of each of them in the model's order, and "." at the others. A list would be slow, because
   * a state checks all items at every change. Letters or digits could match a pattern of `redact()`, which masks what is saved.
   */
  const marks = state(`${name}.counted`, () => "");

  /** Counts a call that is not counted yet. Returns false if the budget has no room for it. */
  function count(ctx: ExecuteContext): boolean {
    if (own.get(ctx)?.answer !== undefined) return false;
    const { turn, callIndex } = ctx;
    const isLatest = latest.get(ctx) === turn;
    const counted = isLatest ? marks.get(ctx) : "";
    if (counted[callIndex] === "!") return true;
    if (!ledger.take(ctx)) return false;
    if (!isLatest) latest.set(ctx, turn);
    const after = counted.slice(callIndex + 1);
    marks.set(ctx, `${counted.slice(0, callIndex).padEnd(callIndex, ".")}!${after}`);
    return true;
  }

  function skipCall(ctx: ExecuteContext): Promise<ToolResult> {
    own.update(ctx, (before) => before ?? {});
    return Promise.resolve(skipped(`Not run: ${reason}.`));
  }

  return onlyIf(skipCall, (ctx) => !count(ctx));
}
