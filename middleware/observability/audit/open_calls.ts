/**
 * The tools, the inputs and the decisions of calls that are not recorded yet.
 *
 * @module
 */
import { type Call, type Scope, state } from "../../../mod.ts";
import type { CallRecord } from "./records.ts";

/** The outcome of the guards' check of a call. */
export interface CheckedCall extends Pick<CallRecord, "decision" | "by"> {
  /** The turn of the call. */
  readonly turn: number;
  /** The tool that may run. Missing if the call did not reach `approval`. */
  readonly tool?: string;
  /** The input that it may run with. Missing if the call did not reach `approval`. */
  readonly input?: unknown;
}

/** By the id of the call. They are saved with the run, because a call that continues on its way out, or after a crash, is not approved again. */
const checked = state<Readonly<Record<string, CheckedCall>>>("audit.calls", () => ({}));

/** A call at a point. */
type AtCall = Scope & { readonly call: Call; readonly turn: number };

/** Returns what is known of a call. */
export function checkedCall(ctx: AtCall): Partial<CheckedCall> {
  return checked.get(ctx)[ctx.call.id] ?? {};
}

/** Adds to what is known of a call. The calls of earlier turns are recorded, and are forgotten. */
export function noteCall(ctx: AtCall, facts: Partial<CheckedCall>): void {
  const { turn, call: { id } } = ctx;
  checked.update(ctx, (calls) => {
    const current = Object.entries(calls).filter(([, call]) => call.turn === turn);
    return { ...Object.fromEntries(current), [id]: { ...calls[id], ...facts, turn } };
  });
}
