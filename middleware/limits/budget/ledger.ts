/**
 * Keeps the ledger of a budget in the outermost run that uses it. Subagents share it.
 *
 * @module
 */
import { type Run, type Scope, state } from "../../../mod.ts";

/** Amounts of everything that a budget limits. */
export interface Amounts {
  /** Tokens. */
  readonly tokens: number;
  /** Cost, in the currency of the prices. */
  readonly cost: number;
  /** Executed calls of tools. */
  readonly calls: number;
  /** Milliseconds. */
  readonly ms: number;
}

/** Records the spending of a run and its subagents. */
export interface Ledger {
  /** Returns the limits less the spent and the reserved amounts. */
  left(at: Scope): Amounts;
  /** Returns false if the time is up. */
  hasTime(at: Scope): boolean;
  /** Counts a call. Returns false if no call or no time is left. */
  take(at: Scope): boolean;
  /** Reserves `most`. The returned function replaces the reservation by the real amounts. */
  reserve(at: Scope, most: Partial<Spent>): (real: Partial<Spent>) => void;
  /** Counts the time of a run until the returned function is called. The time of subagents is included. */
  start(at: Scope): () => void;
}

/** The amounts besides the calls. */
type Spent = Omit<Amounts, "calls">;

const nothing: Spent = { tokens: 0, cost: 0, ms: 0 };

/** Creates a ledger in the state of a run, under `name`. A reservation counts as spent, because a process that dies may have spent it. */
export function ledgerOf(name: string, limits: Amounts): Ledger {
  const spent = state<Spent>(`${name}.spent`, () => nothing);
  const calls = state(`${name}.calls`, () => 0); // of its own: a number is written faster than an object, and this one changes with every call
  const since = state<number | null>(`${name}.since`, () => null);
  const begun = new WeakSet<Run>();

  /** Returns the scope of the run that keeps the ledger. */
  function keeperOf(at: Scope): Scope {
    let { run } = at;
    for (let above = run.parent; above; above = above.parent) if (begun.has(above)) run = above;
    return run === at.run ? at : { ...at, run };
  }

  function add(at: Scope, { tokens = 0, cost = 0, ms = 0 }: Partial<Spent>, sign: 1 | -1 = 1): void {
    spent.update(keeperOf(at), (was) => ({
      tokens: was.tokens + sign * tokens,
      cost: was.cost + sign * cost,
      ms: was.ms + sign * ms,
    }));
  }

  function timeLeft(at: Scope): number {
    if (limits.ms === Infinity) return Infinity;
    const keeper = keeperOf(at);
    const start = since.get(keeper);
    return limits.ms - spent.get(keeper).ms - (start === null ? 0 : keeper.run.now() - start);
  }

  return {
    left(at) {
      const keeper = keeperOf(at);
      const { tokens, cost } = spent.get(keeper);
      return {
        tokens: limits.tokens - tokens,
        cost: limits.cost - cost,
        calls: limits.calls - calls.get(keeper),
        ms: timeLeft(keeper),
      };
    },
    hasTime: (at) => timeLeft(at) > 0,
    take(at) {
      const keeper = keeperOf(at);
      const taken = calls.get(keeper);
      if (limits.calls - taken < 1 || timeLeft(keeper) <= 0) return false;
      calls.set(keeper, taken + 1);
      return true;
    },
    reserve(at, most) {
      add(at, most);
      return (real) => {
        add(at, real);
        add(at, most, -1);
      };
    },
    start(at) {
      begun.add(at.run);
      if (keeperOf(at) !== at || limits.ms === Infinity) return () => {};
      const now = at.run.now();
      since.set(at, now);
      return () => {
        since.set(at, null);
        add(at, { ms: at.run.now() - now });
      };
    },
  };
}
