/**
 * Cleanups: functions that release what a middleware opened for a run.
 *
 * @module
 */
import type { Hook } from "./onion.ts";
import type { AbortContext } from "./points/failure.ts";
import type { Change, Run, Scope } from "./scope.ts";

/** The cleanups of runs, each called once: by the `finally` of a `session` hook, or by `abort` if an inner hook never returns to it. */
export class Cleanups {
  readonly #byRun = new WeakMap<Run, () => Promise<void>>();

  /** Sets the cleanup of a run. */
  set({ run }: Pick<Scope, "run">, cleanup: () => Promise<void>): void {
    let done: Promise<void> | undefined;
    this.#byRun.set(run, () => done ??= cleanup());
  }

  /** Calls the cleanup of a run, or waits for it if it was called before. */
  async run({ run }: Pick<Scope, "run">): Promise<void> {
    await this.#byRun.get(run)?.();
    this.#byRun.delete(run); // a cleanup that holds its run would keep it until the next full garbage collection
  }

  /** The `abort` hook: cleans up after the hooks inside. */
  readonly abort: Hook<AbortContext, Change, void> = async (ctx, next) => {
    try {
      await next();
    } finally {
      await this.run(ctx);
    }
  };
}
