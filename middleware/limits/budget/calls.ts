/**
 * Reserves the calls of tools, and skips those that the budget has no room for.
 *
 * @module
 */
import {
  type Emit,
  type Run,
  type Scope,
  skipped,
  type State,
  type ToolChange,
  type ToolContext,
  type ToolResult,
} from "../../../mod.ts";
import { type Layered, onlyIf } from "../../../src/core/kit.ts";
import type { Ledger } from "./ledger.ts";
import type { BudgetState } from "./requests.ts";

/** The reservations of the runs of one budget. */
export interface CallReservations {
  /** The `tool` hook: skips a call that exceeds the budget. */
  readonly tool: Layered<ToolContext, ToolChange, ToolResult>;
  /** Begins a run, whose events go through the returned filter. */
  begin(at: Scope): RunReservations;
}

/** The reservations of one run. */
export interface RunReservations {
  /** Gives back a call that was denied or skipped. */
  readonly emit: Emit;
  /** Gives back all calls without a result. */
  giveBack(): void;
}

/** Creates the reservations of a budget. `reason` is the text for the model about a skipped call. */
export function callReservations(ledger: Ledger, own: State<BudgetState>, reason: string): CallReservations {
  /** Reserved calls by run. */
  const open = new WeakMap<Run, Set<string>>();

  /** Reserves a call until its result. Returns false if none is left. */
  function reserve(ctx: ToolContext): boolean {
    if (own.get(ctx).answer !== undefined || !ledger.take(ctx)) return false;
    open.get(ctx.run)?.add(ctx.call.id);
    return true;
  }

  function skipCall(ctx: ToolContext): Promise<ToolResult> {
    own.update(ctx, (before) => ({ ...before, over: true }));
    return Promise.resolve(skipped(`Not run: ${reason}.`));
  }

  return {
    tool: onlyIf(skipCall, (ctx) => !reserve(ctx)),
    begin(at) {
      const calls = new Set<string>();
      open.set(at.run, calls);
      return {
        emit(event) {
          if (event.type === "tool.finished" && calls.delete(event.call)) {
            const { status } = event.result;
            if (status === "denied" || status === "skipped") ledger.giveBack(at, 1);
          }
          at.emit(event);
        },
        giveBack: () => ledger.giveBack(at, calls.size),
      };
    },
  };
}
