/**
 * Typed state of a run, for middleware: what belongs to one run lives here, never in a closure.
 *
 * @module
 */
import type { Scope } from "./scope.ts";

/** A named piece of a run's state. */
export interface State<T> {
  /** Its value in this run. */
  get(at: Scope): T;
  /** Replaces it. */
  set(at: Scope, value: T): void;
  /** Replaces it with what `change` makes of it, and gives that. */
  update(at: Scope, change: (value: T) => T): T;
}

/**
 * Names a piece of state that every run starts with `init()`. It goes on when a paused run is resumed, so keep it JSON.
 *
 * ```ts
 * import { agent, type Middleware, state } from "@jizai/jizai";
 *
 * const used = state("counter.used", () => 0);
 *
 * const counter: Middleware = {
 *   name: "counter",
 *   async tool(ctx, next) {
 *     used.update(ctx, (n) => n + 1);
 *     return await next();
 *   },
 * };
 * ```
 */
export function state<T>(name: string, init: () => T): State<T> {
  const read = (at: Scope): T => {
    const { state } = at.run;
    if (!state.has(name)) state.set(name, init());
    return state.get(name) as T; // only this state writes under its name
  };
  return {
    get: read,
    set(at, value) {
      at.run.state.set(name, value);
    },
    update(at, change) {
      const value = change(read(at));
      at.run.state.set(name, value);
      return value;
    },
  };
}
