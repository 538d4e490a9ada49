/**
 * Strict mode: hooks receive frozen values, and a write throws an error that names the hook. An import of its own: `agent({ strict })`.
 *
 * @module
 */
import type { Emit, Point } from "../../protocol/event.ts";
import { foreign, freeze, isFrozenWrite, withInput } from "./checks/freeze.ts";
import type { Hook } from "./onion.ts";
import { reportingFilter } from "./policy.ts";
import type { Change, Scope } from "./scope.ts";

/** Wraps a hook so that contexts, results of `next()` and events are frozen for it. Pass it to `agent({ strict })`. */
export function strict<C extends Scope, D extends Change, R>(
  point: Point,
  middleware: string,
  hook: Hook<C, D, R>,
): Hook<C, D, R> {
  const passed = new WeakSet<object>(); // errors of the inner layers, which have their own names
  const named = (error: unknown): unknown => {
    if (!isFrozenWrite(error) || passed.has(error)) return error;
    const cause = error.message;
    return new TypeError(
      `Cannot change a value at ${point} in "${middleware}": ${cause}; expected a change for next(), or a new value`,
      { cause: error },
    );
  };
  const filter = (emit: Emit): Emit => (event) => {
    try {
      emit(freeze(event));
    } catch (error) {
      throw named(error);
    }
  };
  return async (ctx, next) => {
    const strictNext = (change?: D): Promise<R> => {
      const result = next(change?.emit ? { ...change, emit: filter(reportingFilter(change.emit, ctx.run)) } : change);
      result.then((value) => freeze(value), (error) => {
        if (typeof error === "object" && error !== null) passed.add(error);
      }); // a failure reaches the hook that awaits `result`
      return result;
    };
    try {
      return await hook(freeze(ctx, point === "execute" ? withInput : foreign), strictNext);
    } catch (error) {
      throw named(error);
    }
  };
}
