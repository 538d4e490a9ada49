/**
 * What goes on beside a run: hooks that nobody waits for.
 *
 * @module
 */
import type { Run, Scope } from "../../../mod.ts";
import { startTimer } from "../../../src/core/kit.ts";

/** Work that goes on by itself. */
export interface Work {
  /** What it comes to. */
  readonly done: Promise<unknown>;
  /** Ends it. */
  readonly stop?: () => void;
}

/** What goes on beside runs. */
export interface Background {
  /** Lets some work go on. The operator is told where it fails, unless the run was stopped. */
  add(ctx: Pick<Scope, "run" | "signal">, work: Work): void;
  /** Settles when all of a run's has; what can be ended is, after `grace` milliseconds. */
  rest(run: Run, grace: number): Promise<void>;
}

/** Begins with nothing. */
export function backgroundOf(): Background {
  const going = new WeakMap<Run, Set<Work>>();
  return {
    add({ run, signal }, { done, stop }) {
      const all = going.get(run) ?? new Set();
      going.set(run, all);
      const settled = done.catch((error) => {
        if (!signal.aborted) run.report(error);
      }).finally(() => all.delete(work));
      const work: Work = { done: settled, ...(stop && { stop }) };
      all.add(work);
    },
    async rest(run, grace) {
      const all = [...going.get(run) ?? []];
      if (all.length === 0) return;
      const timer = startTimer(() => all.forEach(({ stop }) => stop?.()), grace);
      await Promise.all(all.map(({ done }) => done)); // which never reject
      clearTimeout(timer);
    },
  };
}
