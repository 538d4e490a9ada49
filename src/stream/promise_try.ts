/**
 * `Promise.try()` for Node 22, which lacks it.
 *
 * @module
 */

/** Calls a function and returns a promise of its result. If the function throws, the promise rejects. */
export function promiseTry<T>(run: () => T | PromiseLike<T>): Promise<T> {
  return new Promise((resolve) => resolve(run()));
}
