/**
 * Hooks that continue in the background of a run.
 *
 * @module
 */
import type { Run, Scope } from "../../../../mod.ts";
import { startTimer } from "../../../../src/core/kit.ts";

/** Work in the background. */
export interface Work {
  readonly done: Promise<unknown>;
  /** Stops it: `done` settles soon afterwards. */
  readonly stop?: () => void;
  /** Whether the end of the run does not wait for it. */
  readonly isDetached?: boolean;
}

/** The work in the background of runs. */
export interface Background {
  /** Adds work. A failure goes to `onError`, unless the run was stopped. */
  add(ctx: Pick<Scope, "run" | "signal">, work: Work): void;
  /** Waits for the work of a run. Stops it after `grace` milliseconds. */
  rest(run: Run, grace: number): Promise<void>;
}

/** Creates an empty background. */
export function backgroundOf(): Background {
  const ongoing = new WeakMap<Run, Set<Work>>();
  return {
    add({ run, signal }, { done, ...rest }) {
      const all = ongoing.get(run) ?? new Set();
      ongoing.set(run, all);
      const settled = done.catch((error) => {
        if (!signal.aborted) run.report(error);
      }).finally(() => all.delete(work));
      const work: Work = { done: settled, ...rest };
      all.add(work);
    },
    async rest(run, grace) {
      const all = [...ongoing.get(run) ?? []];
      if (all.length === 0) return;
      for (const { isDetached, stop } of all) if (isDetached) stop?.();
      const timer = startTimer(() => all.forEach(({ stop }) => stop?.()), grace);
      await Promise.all(all.map(({ done }) => done)); // they never reject: `add` reports failures
      clearTimeout(timer);
    },
  };
}
