/**
 * Deadlines of hooks.
 *
 * @module
 */
import { anySignal, cancellationOf, startTimer, withGracePeriod } from "../../../src/core/kit.ts";

/**
 * Calls `work` with a signal that aborts with `signal` or after `ms` milliseconds. After an abort, `work` has `grace` milliseconds (default 0) to settle;
 * then its result is dropped. Rejects with the error of `work`, or with the reason of the abort.
 */
export async function callWithin<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => T | Promise<T>,
  grace = 0,
): Promise<T> {
  signal.throwIfAborted();
  const late = new AbortController();
  const own = anySignal([signal, late.signal]);
  const call = async () => await work(own);
  const timer = startTimer(() => late.abort(lateAfter(ms)), ms);
  try {
    const result = await withGracePeriod(call(), cancellationOf(own), grace, () => {});
    own.throwIfAborted();
    return result;
  } catch (error) {
    throw own.aborted ? own.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

/** Creates the error for work that took longer than `ms` milliseconds. */
export function lateAfter(ms: number): DOMException {
  return new DOMException(`Not done after ${ms} ms`, "TimeoutError");
}

/** Whether an error says that a deadline passed. */
export function isLate(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}
