/**
 * Strict mode: hooks receive frozen values, and a write throws an error that names the hook.
 *
 * @module
 */
import type { WrapHooks } from "./definition.ts";
import type { Hook } from "./onion.ts";
import { reportingFilter } from "./policy.ts";
import { RunView } from "./run.ts";
import type { Change, Scope } from "./scope.ts";
import type { Emit, Point } from "../protocol/event.ts";

/** The key under which `globalThis` holds the default of `agent({ strict })`. A global, so that it works across copies of the package. */
export const strictKey: symbol = /* @__PURE__ */ Symbol.for("jizai.strict");

/** Returns the wrapper of hooks that an agent uses: `trace`, `strictHook`, both, or none. */
export function wrapperOf(strict: boolean, trace: WrapHooks | undefined): WrapHooks | undefined {
  if (!strict || !trace) return strict ? strictHook : trace;
  const both: WrapHooks = (point, middleware, hook) => trace(point, middleware, strictHook(point, middleware, hook));
  return Object.assign(both, trace);
}

/** Returns the default of `agent({ strict })`: true once `@jizai/jizai/testing` is imported. */
export function strictByDefault(): boolean {
  return Reflect.get(globalThis, strictKey) === true;
}

/** Wraps a hook so that contexts, results of `next()` and events are frozen for it. */
function strictHook<C extends Scope, D extends Change, R>(
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
      }).catch(() => {}); // a failure reaches the hook that awaits `result`; a value with a getter that throws, or with too many levels, is not frozen
      return result;
    };
    try {
      return await hook(freeze(ctx, point === "execute" ? withInput : foreign), strictNext);
    } catch (error) {
      throw named(error);
    }
  };
}

/** The fields whose values the engine did not create. */
const foreign: readonly string[] = ["vars", "model", "tool", "tools", "artifacts", "output", "data", "error"];

/** At `execute`, the input is parsed: the tool's schema created it, and the tool may change it. */
const withInput: readonly string[] = [...foreign, "input"];

/** Freezes plain objects, arrays and the run deeply. Objects of a class, and values that the engine did not create or that cannot be read, stay as they are. */
export function freeze<T>(value: T, except: readonly string[] = foreign): T {
  try {
    freezeDeep(value, except);
  } catch {
    return value; // a proxy has thrown, or the value is nested too deep: where it is used, it is refused
  }
  return value;
}

function freezeDeep(value: unknown, except: readonly string[]): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain && !(value instanceof RunView)) return;
  Object.freeze(value);
  for (const [key, each] of Object.entries(value)) if (!except.includes(key)) freezeDeep(each, except);
  if (value instanceof RunView) freezeDeep([value.limits, value.usage, value.answers], foreign);
}

/** Returns true for an error that JavaScript engines throw for a write to a frozen object. */
export function isFrozenWrite(error: unknown): error is TypeError {
  return error instanceof TypeError &&
    /read.?only|only a getter|not extensible|(delete|define) property/i.test(error.message);
}
