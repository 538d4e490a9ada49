/**
 * Inspection: a middleware whose every hook is given frozen things and watched while it works.
 *
 * @module
 */
import { eachHook } from "../core/each_hook.ts";
import { isInterrupt } from "../core/interrupt.ts";
import type { Hook } from "../core/onion.ts";
import type { Middleware } from "../core/points.ts";
import type { Change, Scope } from "../core/scope.ts";
import type { Emit, Point } from "../protocol/event.ts";
import type { Tell } from "./laws.ts";

/** The points that a middleware hooks. */
export function pointsOf(middleware: Middleware): readonly Point[] {
  const points: Point[] = [];
  eachHook(middleware, (hook, point) => {
    points.push(point);
    return hook;
  });
  return points;
}

/** The same middleware, inspected; `lend` is told of every signal that it is given. */
export function inspected(middleware: Middleware, tell: Tell, lend: (signal: AbortSignal) => void): Middleware {
  return eachHook(middleware, (hook, point) => inspect(hook, (law, what) => tell(law, what, point), point, lend));
}

function inspect<C extends Scope, D extends Change, R>(
  hook: Hook<C, D, R>,
  tell: Tell,
  point: Point,
  lend: (signal: AbortSignal) => void,
): Hook<C, D, R> {
  return async function inspectedHook(ctx, next) {
    const thrown: unknown[] = [];
    const signals = [ctx.signal];
    let open = 0;

    async function go(change?: D): Promise<R> {
      if (change?.signal) signals.push(change.signal);
      open++;
      try {
        return frozen(await next(change?.emit ? { ...change, emit: filter(change.emit, tell) } : change));
      } catch (error) {
        if (isMisuse(error)) tell("next", error.message);
        thrown.push(error);
        throw error;
      } finally {
        open--;
      }
    }

    lend(ctx.signal);
    try {
      const returned = frozen(await hook(frozen(ctx), (change) => awaited(go(change))));
      const lost = thrown.find(isInterrupt);
      if (lost) tell("unwinds", `${lost.name} was thrown beneath, and it answered`);
      if (returned === undefined && point !== "abort") tell("passes", "it returned nothing");
      return returned;
    } catch (error) {
      explain(error, thrown, signals, tell);
      throw error;
    } finally {
      if (open > 0) tell("next", "it did not wait for next()");
    }
  };
}

/** A promise whose failure is nobody's fault where nobody waits: that a hook did not wait is told apart from it. */
function awaited<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** A filter that is given frozen events, and must not throw. */
function filter(emit: Emit, tell: Tell): Emit {
  return (event) => {
    try {
      emit(frozen(event));
    } catch (error) {
      explain(error, [], [], tell);
      throw error;
    }
  };
}

/** Tells what a hook threw, where it may not. It may throw an interrupt, what was thrown beneath, and when it is stopped anything. */
function explain(error: unknown, thrown: readonly unknown[], signals: readonly AbortSignal[], tell: Tell): void {
  const lost = thrown.filter(isInterrupt).find((interrupt) => interrupt !== error);
  if (lost) tell("unwinds", `${lost.name} was thrown beneath, and it threw ${error}`);
  else if (isInterrupt(error) || isMisuse(error) || thrown.some((each) => carries(error, each))) return;
  else if (isMutation(error)) tell("readonly", String(error));
  else if (signals.some(({ aborted }) => aborted)) return;
  else if (thrown.length > 0) tell("passes", `${thrown.at(-1)} was thrown beneath, and it threw ${error}`);
  else tell("passes", `it threw ${error}`);
}

/** Whether `error` is `cause`, or says that it came of it. */
export function carries(error: unknown, cause: unknown): boolean {
  if (error === cause) return true;
  if (error instanceof AggregateError && error.errors.some((each) => carries(each, cause))) return true;
  return error instanceof Error && error.cause !== undefined && carries(error.cause, cause);
}

function isMisuse(error: unknown): error is TypeError {
  return error instanceof TypeError && error.message.startsWith("Cannot call next()");
}

/** Whether `error` is what engines throw at who writes to something frozen. */
function isMutation(error: unknown): boolean {
  return error instanceof TypeError && /read.?only|not extensible|(delete|redefine) property/i.test(error.message);
}

/** Freezes plain data all the way down; what has a class is left as it is. */
export function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return value;
  Object.freeze(value);
  for (const each of Object.values(value)) frozen(each);
  return value;
}
