/**
 * What a middleware hands down from a run to the runs of agents beneath it.
 *
 * @module
 */
import type { Next } from "./onion.ts";
import type { RunResult, SubagentChange, SubagentContext } from "./points.ts";
import type { Run } from "./scope.ts";

/** Something that is handed down. */
export interface HandDown<T> {
  /** What this run was handed; nothing for one that is not beneath another. */
  to(run: Run): T | undefined;
  /** At `subagent`: runs the child, which is handed `value`. */
  along(ctx: SubagentContext, next: Next<SubagentChange, RunResult>, value: T): Promise<RunResult>;
}

/** Begins with nothing handed down. Whoever hooks the child as well finds what it was handed, for as long as it runs. */
export function handDown<T>(): HandDown<T> {
  const handed = new Map<string, T>();
  return {
    to: ({ id }) => handed.get(id),
    async along({ emit }, next, value) {
      let child = "";
      try {
        return await next({
          emit(event) {
            if (event.type === "subagent.started") handed.set(child = event.run, value); // its hooks have not begun
            emit(event);
          },
        });
      } finally {
        handed.delete(child);
      }
    },
  };
}
