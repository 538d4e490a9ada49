/**
 * The ledger of a budget: kept with the outermost run that uses it, and shared by the agents beneath.
 *
 * @module
 */
import { type Run, type Scope, state } from "../../../mod.ts";

/** How much of everything. */
export interface Amounts {
  /** Tokens. */
  readonly tokens: number;
  /** Money. */
  readonly cost: number;
  /** Calls of tools. */
  readonly calls: number;
  /** Milliseconds. */
  readonly ms: number;
}

/** What a run and the agents beneath it have spent. */
export interface Ledger {
  /** What is left of the limits, less what is reserved. */
  left(at: Scope): Amounts;
  /** Takes a call, where one is left, and time. */
  take(at: Scope): boolean;
  /** Gives calls back that did not come to anything. */
  giveBack(at: Scope, calls: number): void;
  /** Takes `most`, until it is settled by what it came to. */
  reserve(at: Scope, most: Partial<Amounts>): (real: Partial<Amounts>) => void;
  /** Begins with a run, and counts its time until it is told to stop; that of agents beneath is in it. */
  start(at: Scope): () => void;
}

const nothing: Amounts = { tokens: 0, cost: 0, calls: 0, ms: 0 };

/** Opens a ledger in the state of a run, under `name`. What is reserved counts as spent there: a process that dies may have spent it. */
export function ledgerOf(name: string, limits: Amounts): Ledger {
  const spent = state<Amounts>(`${name}.spent`, () => nothing);
  const since = state<number | null>(`${name}.since`, () => null);
  const begun = new WeakSet<Run>();

  /** Where it is kept. */
  function where(at: Scope): Scope {
    let { run } = at;
    for (let above = run.parent; above; above = above.parent) if (begun.has(above)) run = above;
    return run === at.run ? at : { ...at, run };
  }

  function add(at: Scope, { tokens = 0, cost = 0, calls = 0, ms = 0 }: Partial<Amounts>, sign: 1 | -1 = 1): void {
    spent.update(where(at), (was) => ({
      tokens: was.tokens + sign * tokens,
      cost: was.cost + sign * cost,
      calls: was.calls + sign * calls,
      ms: was.ms + sign * ms,
    }));
  }

  function timeLeft(kept: Scope): number {
    if (limits.ms === Infinity) return Infinity;
    const start = since.get(kept);
    return limits.ms - spent.get(kept).ms - (start === null ? 0 : Date.now() - start);
  }

  return {
    left(at) {
      const kept = where(at);
      const { tokens, cost, calls } = spent.get(kept);
      return {
        tokens: limits.tokens - tokens,
        cost: limits.cost - cost,
        calls: limits.calls - calls,
        ms: timeLeft(kept),
      };
    },
    take(at) {
      const kept = where(at);
      const was = spent.get(kept);
      if (limits.calls - was.calls < 1 || timeLeft(kept) <= 0) return false;
      spent.set(kept, { ...was, calls: was.calls + 1 });
      return true;
    },
    giveBack: (at, calls) => add(at, { calls: -calls }),
    reserve(at, most) {
      add(at, most);
      return (real) => {
        add(at, real);
        add(at, most, -1);
      };
    },
    start(at) {
      begun.add(at.run);
      if (where(at) !== at || limits.ms === Infinity) return () => {};
      const now = Date.now();
      since.set(at, now);
      return () => {
        since.set(at, null);
        add(at, { ms: Date.now() - now });
      };
    },
  };
}
