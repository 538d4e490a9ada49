/**
 * Turns of the event loop, on the timers of the platform. A test that fakes timers does not delay them, because the originals are found when this module loads.
 *
 * @module
 */

const setTimer = timer("setTimeout");
const clearTimer = timer("clearTimeout");
const setSoon = timer("setImmediate");
const clearSoon = timer("clearImmediate");

/** Calls `run` in the next turn of the event loop. */
export function turn(run: () => void): ReturnType<typeof setTimeout> {
  return setTimer()(run);
}

/** Cancels a call of `turn()`. */
export function clearTurn(id: ReturnType<typeof setTimeout> | undefined): void {
  clearTimer()(id);
}

/**
 * Calls `run` in the next turn of the event loop, and returns a function that cancels the call. Where the platform has `setImmediate()`, it costs a tenth of
 * `turn()` and does not last the millisecond of a timer. Use `turn()` for work that should gather meanwhile, such as writes to a disk.
 */
export function soon(run: () => void): () => void {
  const start: typeof setImmediate | undefined = setSoon(); // browsers and Cloudflare have none
  if (!start) {
    const timer = turn(run);
    return () => clearTurn(timer);
  }
  const immediate = start(run);
  return () => clearSoon()(immediate);
}

/** Returns a function that returns a timer of the platform. Deno loads its timers when one is read first, so it is read only when it is called. */
function timer<K extends "setTimeout" | "clearTimeout" | "setImmediate" | "clearImmediate">(
  name: K,
): () => typeof globalThis[K] {
  const own = Object.getOwnPropertyDescriptor(globalThis, name);
  if (own?.get) return own.get.bind(globalThis);
  const found = globalThis[name];
  return () => found;
}
