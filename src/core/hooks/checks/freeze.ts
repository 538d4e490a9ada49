/**
 * Freezing the values that the engine passes to hooks.
 *
 * @module
 */
import type { Run } from "../scope.ts";

/** The fields whose values the engine did not create. */
export const foreign: readonly string[] = ["vars", "model", "tool", "tools", "artifacts", "output", "data", "error"];

/** At `execute`, the input is parsed: the tool's schema created it, and the tool may change it. */
export const withInput: readonly string[] = [...foreign, "input"];

/** Freezes plain objects, arrays and the run deeply. Objects of a class, and values that the engine did not create, stay as they are. */
export function freeze<T>(value: T, except: readonly string[] = foreign): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain && !isRun(value)) return value;
  Object.freeze(value);
  for (const [key, each] of Object.entries(value)) if (!except.includes(key)) freeze(each, except);
  if (isRun(value)) freeze([value.limits, value.usage, value.answers]);
  return value;
}

/** Whether a value is a run as hooks see it, also one of another copy of the package. */
function isRun(value: object): value is Run {
  return "~engine" in value;
}

/** Returns true for an error that JavaScript engines throw for a write to a frozen object. */
export function isFrozenWrite(error: unknown): error is TypeError {
  return error instanceof TypeError &&
    /read.?only|only a getter|not extensible|(delete|define) property/i.test(error.message);
}
