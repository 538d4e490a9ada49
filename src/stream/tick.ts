/**
 * Ticks of the event loop, on the timers of the platform. A test that fakes timers does not delay them, because the originals are found when this module loads.
 *
 * @module
 */

// `Promise.try()` for Node 22, which lacks it.

/** Calls a function and returns a promise of its result. If the function throws, the promise rejects. */
export function promiseTry<T>(run: () => T | PromiseLike<T>): Promise<T> {
  return new Promise((resolve) => resolve(run()));
}

// Ticks of the event loop.

const start = /* @__PURE__ */ timer("setTimeout");
const clear = /* @__PURE__ */ timer("clearTimeout");

/** Calls `run` in the next tick of the event loop, and returns a function that cancels the call. */
export function nextTick(run: () => void): () => void {
  const started = start()(run);
  return () => clear()(started);
}

/** Returns a function that returns a timer of the platform. Deno loads its timers when one is read first, so it is read only when it is called. */
function timer<K extends "setTimeout" | "clearTimeout">(name: K): () => typeof globalThis[K] {
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, name);
  if (descriptor?.get) return descriptor.get.bind(globalThis);
  const found = globalThis[name];
  return () => found;
}
